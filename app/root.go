package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "postburner",
		Short: "Background jobs from beanstalkd",
		Long: `Postburner runs background jobs from beanstalkd.

A worker is configured in postburner.yml (config/postburner.yml or ./postburner.yml, or
--config). Each setting can be overridden by a variable such as POSTBURNER_FORKS, and
the usual ones by a flag.`,
		Example: `  postburner work --env production --worker default
  postburner enqueue SendEmail --args '{"user_id": 7}'
  postburner check --env production`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q%s", args[0], suggest(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(explainFlag)
	root.AddCommand(p.workCommand(), p.childCommand(), p.enqueueCommand(), p.checkCommand(), p.brokerCommand(),
		p.demoCommand(), p.schemaCommand(), p.versionCommand())
	return root
}

// noArgs is for commands that have flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes flags only, not %q", cmd.Name(), args[0])
}

// suggest names the commands below cmd that the word is close to.
func suggest(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2 // letters to change, at most
	names := cmd.SuggestionsFor(word)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", strings.Join(names, " or "))
}

// explainFlag marks the error of a flag as one of usage. That of an unknown flag names the flags that it is close to.
func explainFlag(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage(err)
	}
	// cobra measures how close names of commands are: let it take the flags for some.
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return usage(fmt.Errorf("%w%s", err, suggest(flags, "--"+unknown.GetSpecifiedName())))
}
