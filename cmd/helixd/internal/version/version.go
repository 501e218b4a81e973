package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// A release build sets these with -ldflags "-X …/internal/version.stampedVersion=…". Otherwise the
// toolchain's record of the build counts.
var (
	stampedVersion string
	stampedCommit  string
	stampedDate    string // of the commit, RFC 3339
)

// Build says which program this is.
type Build struct {
	Version  string `json:"version"`          // a release's, a module's or the commit
	Commit   string `json:"commit,omitempty"` // missing if the build did not know
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go       string `json:"go"`               // the toolchain
	Modified bool   `json:"modified"`         // not only what was committed was built
	Platform string `json:"platform"`
}

// This says which program this is.
func This() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(info, stampedVersion, stampedCommit, stampedDate)
}

func buildOf(info *debug.BuildInfo, version, commit, date string) Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if version != "" {
		b.Modified = strings.HasSuffix(version, "-dirty")
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	switch b.Version = info.Main.Version; {
	case b.Version != "" && b.Version != "(devel)":
	case b.Commit != "":
		b.Version = b.Commit
	default:
		b.Version = "unknown"
	}
	return b
}

func Current() string { return This().Version }
