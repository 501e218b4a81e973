package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A release build sets these with -ldflags "-X …/eventlog/version.stampedVersion=…". Otherwise the
// toolchain's record of the build counts.
var (
	stampedVersion string
	stampedCommit  string
	stampedDate    string // of the commit, RFC 3339
)

// unknown is the version of a build that does not say.
const unknown = "unknown"

// module is helixd's.
const module = "github.com/helixd/helixd"

// Build says which program this is.
type Build struct {
	Version  string `json:"version"`          // a release's, a module's or the commit
	Commit   string `json:"commit,omitempty"` // missing if the build did not know
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go       string `json:"go"`               // the toolchain
	Modified bool   `json:"modified"`         // not only what was committed was built
	Platform string `json:"platform"`
	Format   int    `json:"format"` // of stored data
}

// This says which program this is.
func This() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(info, stampedVersion, stampedCommit, stampedDate)
}

// untagged is the end of a module's version that the toolchain makes of a commit without a
// tag: its time and the beginning of its hash.
var untagged = regexp.MustCompile(`[.-](\d{14})-([0-9a-f]{12})(\+\w+)?$`)

func buildOf(info *debug.BuildInfo, version, commit, date string) Build {
	b := Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Format: Format}
	if version != "" {
		b.Modified = strings.HasSuffix(version, "-dirty")
		return b
	}
	if main := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module }); main >= 0 {
		info = &debug.BuildInfo{Main: *info.Deps[main]} // another module's program: its commit is not helixd's
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
	if found := untagged.FindStringSubmatch(info.Main.Version); found != nil && b.Commit == "" { // go install does not see the repository
		b.Commit = found[2]
		if at, err := time.Parse("20060102150405", found[1]); err == nil {
			b.Date = at.Format(time.RFC3339)
		}
	}
	switch b.Version = info.Main.Version; {
	case b.Version != "" && b.Version != "(devel)":
	case b.Commit != "":
		b.Version = b.Commit
	default:
		b.Version = unknown
	}
	return b
}

// Current is the version of this program.
var Current = sync.OnceValue(func() string { return This().Version })
