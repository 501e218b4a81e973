package deployment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Released returns the path of the helixd that a commit of this repository makes, for tests
// that run an earlier version. It builds it once and keeps it in the user's cache.
func Released(ctx context.Context, commit, version string) (path string, err error) {
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	full, err := git(ctx, root, "rev-parse", "--verify", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("commit %s is not in this clone (git fetch --unshallow): %w", commit, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "helixd-released")
	path = filepath.Join(dir, full)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	Say("building %s of commit %.12s", version, full)
	source, err := os.MkdirTemp("", "helixd-source-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(source)
	if _, err := git(ctx, root, "archive", "--format=tar", "--output="+filepath.Join(source, "tar"), full); err != nil {
		return "", err
	}
	if err := run(exec.CommandContext(ctx, "tar", "-xf", "tar"), source); err != nil {
		return "", err
	}
	// Of these one is there, depending on the version.
	flags := ""
	for _, in := range []string{"eventlog/version", "cmd/helixd/internal/version"} {
		flags += " -X github.com/helixd/helixd/" + in + ".stampedVersion=" + version
	}
	built := path + "." + filepath.Base(source) // another process may do the same
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", flags, "-o", built, "./cmd/helixd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if err := errors.Join(os.MkdirAll(dir, 0o700), run(build, source), os.Rename(built, path)); err != nil {
		return "", err
	}
	return path, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

func run(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, out)
	}
	return nil
}
