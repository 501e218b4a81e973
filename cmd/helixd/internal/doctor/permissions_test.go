package doctor

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// Each subject that helixd uses is missed when the user lacks it, and only it.
func TestDoctorOnMissingPermissions(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting
	denials := []struct {
		subject   string
		subscribe bool
	}{
		{"helix.log.>", false},
		{"helix.seg.0.*", false},
		{"helix.floor.0.*", false},
		{"helix.erased.0.*", false},
		{"helix.blob.>", false},
		{"helix.snap.0.>", false},
		{"helix.runs.>", false},
		{"helix.node.ask.*", false},
		{"helix.node.ask.*", true},
		{"helix.node.agent.*", false},
		{"helix.node.agent.*", true},
		{"helix.node.all", false},
		{"helix.node.all", true},
		{"helix.node.wake", false},
		{"helix.node.wake", true},
		{"helix.node.hold.*", false},
		{"helix.node.hold.*", true},
		{"helix.live.*", true},
		{"_INBOX.>", true},
		{"_INBOX.>", false},
		{"$JS.API.STREAM.INFO.HELIX_LOG_0", false},
		{"$JS.API.STREAM.CREATE.HELIX_SNAP_0", false},
		{"$JS.API.STREAM.UPDATE.HELIX_SNAP_0", false},
		{"$JS.API.STREAM.MSG.GET.HELIX_LOG_0", false},
		{"$JS.API.STREAM.MSG.DELETE.HELIX_SEG_0", false},
		{"$JS.API.STREAM.PURGE.HELIX_LOG_0", false},
		{"$JS.API.DIRECT.GET.HELIX_LOG_0", false},
		{"$JS.API.DIRECT.GET.HELIX_SNAP_0", false},
		{"$JS.API.DIRECT.GET.HELIX_SNAP_0.>", false},
		{"$JS.API.STREAM.MSG.GET.HELIX_RUNS", false},
		{"$JS.API.STREAM.MSG.DELETE.HELIX_RUNS", false},
		{"$JS.API.INFO", false},
	}
	o := &server.Options{ServerName: "strict", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, StoreDir: t.TempDir()}
	users := `{user: all, password: p}`
	for i, d := range denials {
		kind := "publish"
		if d.subscribe {
			kind = "subscribe"
		}
		users += fmt.Sprintf(`, {user: u%d, password: p, permissions: {%s: {deny: [%q]}}}`, i, kind, d.subject)
	}
	require.NoError(t, o.ProcessConfigString(fmt.Sprintf(`jetstream: enabled, accounts { A { jetstream: enabled, users: [%s] } }`, users)))
	srv, err := server.NewServer(o)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(time.Minute))
	as := func(user string) string { return strings.Replace(srv.ClientURL(), "nats://", "nats://"+user+":p@", 1) }
	nc, err := nats.Connect(as("all"))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log := jetstreamtest.Open(t, nc, nil)
	_, err = eventlog.AppendOnce(t.Context(), log, "s", "w", 0, []eventlog.Entry{logtest.Text("s", "x")})
	require.NoError(t, err)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{
		Name: "HELIX_RUNS", Subjects: []string{"helix.runs.*.*"},
	})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "helix.runs.agent.session", nil)
	require.NoError(t, err)
	stored := func() (all []natsjs.StreamInfo) {
		list := js.ListStreams(t.Context())
		for s := range list.Info() {
			s.TimeStamp = time.Time{}
			all = append(all, *s)
		}
		require.NoError(t, list.Err())
		return all
	}
	before := stored()
	out, err := doctorText(t, t.Context(), time.Now, "--nats", as("all"))
	require.NoError(t, err, out)
	require.Contains(t, out, "\nok       permissions  ")
	require.Equal(t, 1, strings.Count(out, " permissions "), out)
	for i, denied := range denials {
		t.Run(denied.subject, func(t *testing.T) {
			out, err := doctorText(t, t.Context(), time.Now, "--nats", as(fmt.Sprint("u", i)))
			if denied.subject == "$JS.API.INFO" { // helixd does without, the doctor doesn't
				require.NoError(t, err, out)
				require.Regexp(t, `(?m)^warning  limits .*\n +-> .*publish to \$JS\.API\.INFO`, out)
				return
			}
			require.ErrorIs(t, err, errProblems, out)
			require.Equal(t, 1, flags.ExitCode(err))
			verb := "publish"
			if denied.subscribe {
				verb = "subscribe"
			}
			subject := strings.TrimSuffix(strings.TrimSuffix(denied.subject, ">"), "*")
			require.Regexp(t, `(?m)^problem  permissions .*\n +-> .*as to `+regexp.QuoteMeta(verb+" to "+subject), out)
			require.Contains(t, out, "problems: 1\n")
		})
	}
	require.Equal(t, before, stored(), "nothing is stored, created or changed")
}
