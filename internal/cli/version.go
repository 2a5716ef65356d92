package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "dev"

type versionObject struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which program this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			a.tellVersion()
			return nil
		},
	}
}

func (a *app) tellVersion() {
	v := buildVersion()
	if a.json {
		a.emit(v)
		return
	}
	a.say("placet %s", own(v.Version))
	if v.Revision != "" {
		a.say("  revision   %s", own(v.Revision))
	}
	a.say("  built with %s for %s", own(v.Go), own(v.Platform))
}

func buildVersion() versionObject {
	v := versionObject{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; v.Version == "dev" && m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
