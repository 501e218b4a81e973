package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildOf(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}
	for name, c := range map[string]struct {
		info            debug.BuildInfo
		version, commit string
		want            Build
	}{
		"nothing known":      {want: Build{Version: "unknown"}},
		"a stamped release":  {debug.BuildInfo{Settings: vcs}, "v1.2.3", "def", Build{Version: "v1.2.3", Commit: "def"}},
		"a stamped checkout": {version: "v1.2.3-dirty", want: Build{Version: "v1.2.3-dirty", Modified: true}},
		"go install":         {info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.4"}}, want: Build{Version: "v1.2.4"}},
		"go install, no tag": {debug.BuildInfo{Main: debug.Module{Version: "v1.2.5-0.20260102030405-0123456789ab"}}, "", "", Build{
			Version: "v1.2.5-0.20260102030405-0123456789ab", Commit: "0123456789ab", Date: "2026-01-02T03:04:05Z",
		}},
		"a program of another module": {info: debug.BuildInfo{
			Main: debug.Module{Path: "example.com/app", Version: "v7.0.0"}, Settings: vcs, Deps: []*debug.Module{{Path: "a"}, {Path: "github.com/helixd/helixd", Version: "v1.2.5"}},
		}, want: Build{Version: "v1.2.5"}},
		"a checkout":          {info: debug.BuildInfo{Settings: vcs}, want: Build{Version: "abc", Commit: "abc", Date: "2026-01-02T03:04:05Z", Modified: true}},
		"a checkout, (devel)": {info: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs[:1]}, want: Build{Version: "abc", Commit: "abc"}},
	} {
		c.want.Go, c.want.Platform, c.want.Format = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH, Format
		require.Equal(t, c.want, buildOf(&c.info, c.version, c.commit, ""), name)
	}
}
