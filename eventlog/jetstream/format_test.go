package jetstream_test

import (
	"maps"
	"testing"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/version"
)

// streamsOf returns the settings of all streams, and how many messages each has.
func streamsOf(t *testing.T, nc *nats.Conn) (configs map[string]natsjs.StreamConfig, messages map[string]uint64) {
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	configs, messages = map[string]natsjs.StreamConfig{}, map[string]uint64{}
	list := js.ListStreams(t.Context())
	for info := range list.Info() {
		configs[info.Config.Name], messages[info.Config.Name] = info.Config, info.State.LastSeq
	}
	require.NoError(t, list.Err())
	return configs, messages
}

// mark sets metadata of all streams; an empty value removes it.
func mark(t *testing.T, nc *nats.Conn, metadata map[string]string) {
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	configs, _ := streamsOf(t, nc)
	for _, c := range configs {
		maps.Copy(c.Metadata, metadata)
		maps.DeleteFunc(c.Metadata, func(_, value string) bool { return value == "" })
		_, err := js.UpdateStream(t.Context(), c)
		require.NoError(t, err)
	}
}

func TestALogOfALaterFormatIsRefused(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	require.NoError(t, log.Close())
	for partitions, helixd := range map[string]string{"1 v3": "v9.8.7", "1,4 v3": "v9.8.7", "anything else v3": "v9.8.7", "1 v4": ""} {
		mark(t, nc, map[string]string{"helix.partitions": partitions, "helix.helixd": helixd})
		configs, messages := streamsOf(t, nc)
		for name, o := range map[string]*jetstream.Options{
			"defaults": nil, "partitions": {Partitions: 1}, "growing": {Partitions: 4, Grow: true}, "existing": {Existing: true}, "read-only": {ReadOnly: true},
		} {
			_, err := jetstream.Open(t.Context(), nc, o)
			var newer *version.NewerError
			require.ErrorAs(t, err, &newer, "%s of %q", name, partitions)
			require.Equal(t, helixd, newer.Helixd)
			if helixd != "" {
				require.EqualError(t, err, "jetstream: the log has format 3, written by helixd v9.8.7; this is helixd "+version.Current()+", which reads formats up to 2: use helixd v9.8.7 or later")
			}
			after, since := streamsOf(t, nc)
			require.Equal(t, configs, after, "%s changes nothing", name)
			require.Equal(t, messages, since, "%s stores nothing", name)
		}
	}
	for _, partitions := range []string{"1 v", "1 vx", "1 v0", "1 v-1", "x"} {
		mark(t, nc, map[string]string{"helix.partitions": partitions})
		_, err := jetstream.Open(t.Context(), nc, nil)
		require.ErrorContains(t, err, "stream HELIX_LOG_0 is not of a helixd log", "%q", partitions)
	}
}

// TestALogOfAnEarlierFormatIsContinued by everyone who writes, and gets the number before
// the first record of the new format. It is 0.1.0's if it does not say which version has set it.
func TestALogOfAnEarlierFormatIsContinued(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	head := uint64(0)
	log := jetstreamtest.Open(t, nc, nil)
	configs, _ := streamsOf(t, nc)
	require.Equal(t, version.Current(), configs["HELIX_LOG_0"].Metadata["helix.helixd"])
	require.Equal(t, "1 v2", configs["HELIX_LOG_0"].Metadata["helix.partitions"])
	for name, o := range map[string]*jetstream.Options{"defaults": nil, "existing": {Existing: true}} {
		var err error
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", name)})
		require.NoError(t, err)
		mark(t, nc, map[string]string{"helix.partitions": "1", "helix.helixd": ""})
		before, _ := streamsOf(t, nc)
		reads := jetstreamtest.Open(t, nc, &jetstream.Options{ReadOnly: true})
		require.NotEmpty(t, logtest.Records(t, reads, "s"))
		after, _ := streamsOf(t, nc)
		require.Equal(t, before, after, "a reader leaves the number as it is")

		log = jetstreamtest.Open(t, nc, o)
		configs, _ := streamsOf(t, nc)
		for _, stream := range []string{"HELIX_LOG_0", "HELIX_SEG_0", "HELIX_BLOBS"} {
			require.Equal(t, "1 v2", configs[stream].Metadata["helix.partitions"], "%s: %s", name, stream)
			require.Equal(t, version.Current(), configs[stream].Metadata["helix.helixd"], "%s: %s", name, stream)
		}
		require.Equal(t, head, logtest.Records(t, log, "s")[len(logtest.Records(t, log, "s"))-1].Sequence)
	}
	mark(t, nc, map[string]string{"helix.helixd": ""}) // as 0.1.0 leaves it
	jetstreamtest.Open(t, nc, nil)
	configs, _ = streamsOf(t, nc)
	require.NotContains(t, configs["HELIX_LOG_0"].Metadata, "helix.helixd", "the number stays, and so does who has set it")
}
