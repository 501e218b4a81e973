package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
)

// Command looks at what helixd serve would run on, or runs on, and says what
// to change. It stores nothing and creates no stream.
//
// Without other flags it looks at what the configuration says, as serve would:
// an outside deployment is connected to; on the data folder of an embedded
// server a server is started and stopped again, which reads the files as
// serve's would; where a daemon uses the folder, that daemon is asked.
type Command struct {
	flags.Configuration
	NATS       string `name:"nats" help:"NATS deployment to look at, in place of the configured one."`
	Creds      string `help:"Credentials file for --nats." type:"path"`
	ConfigOnly bool   `help:"Look at the configuration alone: nothing is started, and of the deployment nothing is looked at."`
	Server     string `help:"URL of a daemon to look at: all that is known through HTTP."`
	Token      string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
	JSON bool `help:"Print JSON."`
}

// Help is shown by helixd doctor --help.
func (Command) Help() string {
	return `It stores nothing and creates no stream. Each line is ok, a warning or a problem, what was looked at, what was found and, after ->, what to change.

With --json: {"version", "checks": [{"id", "status": "ok|warning|problem", "target"?, "found", "advice"?}], "warnings", "problems", "error"?}. The ids are stable: config, exposure, certificates, workspaces, readModels, tracing, models, tools, mcp, remoteAgents, embedder, memory, folder, disk, daemon, listings, quotas, connection, security, permissions, jetstream, versions, streams, format, partitions, settings, replicas, durability, limits, storage, clock.

The exit code is 0 without a problem, 1 with one, 2 if it could not look.`
}

// The ids of the checks that are not jetstream.Examine's.
const (
	checkConfig = "config"
	checkFolder = "folder" // of the embedded server
	checkDisk   = "disk"
	checkMemory = "memory" // that Go's runtime may use
	checkDaemon = "daemon"

	checkCertificates = "certificates" // of TLS

	checkExposure   = "exposure"   // of the HTTP server
	checkWorkspaces = "workspaces" // what confines commands
	checkReadModels = "readModels" // their file
	checkTracing    = "tracing"    // the collector
	checkListings   = "listings"   // of a daemon's read models
)

// doctorTimeout bounds the whole look.
const doctorTimeout = 2 * time.Minute

// errProblems says that the doctor could look and has found problems.
var errProblems = errors.New("found problems: each line says what to change")

func (c Command) Run(p *flags.Process) error {
	return c.runBy(p, time.Now)
}

// runBy is Run by a clock.
func (c Command) runBy(p *flags.Process, now func() time.Time) error {
	out := &diagnosis{w: p.Stdout, json: c.JSON}
	ctx, cancel := context.WithTimeout(p.Ctx, doctorTimeout)
	defer cancel()
	d := &exam{cmd: c, process: p, now: now, Report: out.add}
	err := d.examine(ctx)
	if err != nil {
		err = flags.WithCode(2, fmt.Errorf("not examined: %w", err)) // hides its cause: an interruption is no success
	}
	if err := errors.Join(err, out.close(err)); err != nil {
		return err
	}
	if out.problems > 0 {
		return errProblems
	}
	return nil
}

// exam is a look under way.
type exam struct {
	doctor.Report
	cmd     Command
	process *flags.Process
	now     func() time.Time
	config  *config.Config
}

func (d *exam) examine(ctx context.Context) error {
	c, err := d.cmd.Read(d.process.Logs)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			d.Problem(checkConfig, d.cmd.Config, strings.TrimSpace(line), "correct the key that is named; helixd serve does not start with it")
		}
		return nil
	}
	d.config = c
	d.configuration()
	if d.cmd.Server == "" && d.cmd.NATS == "" {
		d.exposure()
		d.certificates()
		d.workspaces()
		d.readModels()
		d.tracing(ctx)
		d.upstreams(ctx)
		d.memory()
	}
	switch {
	case d.cmd.ConfigOnly:
	case d.cmd.NATS != "":
		c.NATS.URL = d.cmd.NATS
		err = d.deployment(ctx)
	case d.cmd.Server != "":
		err = d.daemon(ctx, d.cmd.Server)
	case c.NATS.URL != "":
		err = d.deployment(ctx)
	default:
		err = d.embedded(ctx)
	}
	return err
}

// configuration says what helixd serve refuses that loads.
func (d *exam) configuration() {
	if d.cmd.Config == "" {
		if d.cmd.NATS == "" && d.cmd.Server == "" {
			d.OK(checkConfig, "no file: defaults, environment and flags")
		}
		return
	}
	_, agents := agentconfig.Agents(d.config)
	_, auth := settings.AuthenticationOf(d.config.Auth, settings.Authentication{})
	if err := errors.Join(agents, auth); err != nil {
		d.Problem(checkConfig, d.cmd.Config, strings.ReplaceAll(err.Error(), "\n", "; "), "correct the key that is named; helixd serve does not start with it")
		return
	}
	if !d.config.Auth.Configured() && !d.config.Auth.AllowUnauthenticated {
		d.Warning(checkConfig, d.cmd.Config, d.cmd.Config+" accepts no caller",
			"set auth.tokens or auth.jwt; without them helixd serve starts only with auth.allowUnauthenticated")
		return
	}
	if d.config.NATS.Cluster.Listen != "" && d.config.Auth.Configured() && d.config.Auth.TicketKey.IsZero() {
		d.Warning(checkConfig, d.cmd.Config, "auth.ticketKey is not set: a stream ticket opens a stream only on the node of the cluster that made it",
			"set auth.ticketKey to the same random text of 32 bytes or more on each node, or ignore this if no browser uses tickets")
		return
	}
	d.OK(checkConfig, "%s", d.cmd.Config)
}

// deployment looks at an outside one.
func (d *exam) deployment(ctx context.Context) error {
	opts, err := settings.NATSOptions(d.config.NATS)
	if err != nil {
		d.Problem("connection", d.config.NATS.URL, err.Error(), "correct nats.tls: the file can't be read")
		return err
	}
	if d.cmd.Creds != "" {
		opts = append(opts, nats.UserCredentials(d.cmd.Creds))
	}
	o := d.options()
	if d.cmd.NATS == "" || d.cmd.Config != "" {
		o.Partitions, o.Replicas = d.config.NATS.Partitions, d.config.NATS.Replicas
	}
	return d.connected(ctx, d.config.NATS.URL, opts, o)
}

// connected looks at a deployment through its own connection.
func (d *exam) connected(ctx context.Context, address string, opts []nats.Option, o *doctor.Options) error {
	nc, err := nats.Connect(address, append(opts, nats.Name("helixd doctor"), nats.ErrorHandler(settings.IgnoreAsync))...)
	if err != nil {
		d.Problem("connection", "", fmt.Sprintf("%s: %v", redacted(address), err), connectAdvice(err))
		return fmt.Errorf("nats: %w", err)
	}
	defer nc.Close()
	return doctor.Examine(ctx, nc, o, d.Report)
}

// redacted is a list of URLs without what may be a password or a token.
func redacted(addresses string) string {
	all := strings.Split(addresses, ",")
	for i, a := range all {
		if u, err := url.Parse(strings.TrimSpace(a)); err == nil && u.User != nil {
			u.User = url.User("xxxxx")
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}

// connectAdvice is what to change if there is no connection.
func connectAdvice(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, fs.ErrNotExist):
		return "correct nats.credentials, or nats.user and nats.password, or nats.token: the server does not know them, or they have expired"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted),
		strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return "correct nats.tls (ca: who signed the server's certificate; cert and key: ours, where the server asks for them), and nats.url (tls://…)"
	}
	return "start the NATS server, or correct nats.url"
}

// options are the options that don't depend on where the streams are.
func (d *exam) options() *doctor.Options {
	return &doctor.Options{Neighbours: neighboursOf(d.config), Subjects: nodeSubjects, Now: d.now}
}
