package app

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is set by the build: -ldflags '-X github.com/postburner/postburner/app.Version=v1.2.3'.
var Version string

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionOf() build {
	b := build{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	if ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Revision = setting.Value
			}
		}
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of this program, the Go that built it and the platform.",
		Example: "  postburner version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := versionOf()
			if asJSON {
				return p.printJSON(b)
			}
			return p.print("postburner %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printJSON writes a value as one line.
func (p *program) printJSON(value any) error { return json.NewEncoder(p.Stdout).Encode(value) }
