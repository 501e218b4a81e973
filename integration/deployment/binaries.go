package deployment

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are the programs that are run.
type Binaries struct {
	Helixd     string // path
	NATSServer string // path; empty: none is needed
}

// Build builds helixd, unless a path is given, and if asked for the nats-server
// that go.mod names, into dir.
func Build(ctx context.Context, dir, helixd string, natsServer bool) (b Binaries, err error) {
	Say("building")
	if helixd == "" {
		b.Helixd, err = build(ctx, dir, "helixd", "github.com/helixd/helixd/cmd/helixd")
	} else {
		b.Helixd, err = filepath.Abs(helixd) // nodes run in their own folders
	}
	if err != nil {
		return b, err
	}
	if natsServer {
		b.NATSServer, err = build(ctx, dir, "nats-server", "github.com/nats-io/nats-server/v2")
	}
	return b, err
}

// build builds a program with the versions of helixd's module, also for the other modules
// of this repository.
func build(ctx context.Context, dir, name, from string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/helixd/helixd").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(root)), "-o", path, from).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", from, err, out)
	}
	return path, nil
}
