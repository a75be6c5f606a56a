package app

import (
	"github.com/spf13/cobra"

	"github.com/postburner/postburner/config"
)

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of postburner.yml, for editors",
		Long: `Print the JSON schema of postburner.yml. Editors that know it complete keys, show what
they mean, and mark mistakes while you type.`,
		Example: `  postburner schema > postburner.schema.json
  # and as the first line of postburner.yml:
  # yaml-language-server: $schema=postburner.schema.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := config.Schema()
			if err != nil {
				return err
			}
			return p.print("%s\n", text)
		},
	}
}
