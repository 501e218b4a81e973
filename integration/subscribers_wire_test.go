package integration_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// wire is a subscriber that speaks the protocol itself, and so can say what no
// client library would.
type wire struct {
	net.Conn
	r     *bufio.Reader
	nonce string
}

func dialWire(t *testing.T, url string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	w := &wire{Conn: conn, r: bufio.NewReader(conn)}
	line, err := w.r.ReadString('\n')
	require.NoError(t, err)
	var info struct{ Nonce string }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info))
	w.nonce = info.Nonce
	return w
}

// connect is the line that proves a right.
func (w *wire) connect(t *testing.T, right subscriber.Right) string {
	t.Helper()
	user, err := nkeys.FromSeed([]byte(right.Seed))
	require.NoError(t, err)
	signature, err := user.Sign([]byte(w.nonce))
	require.NoError(t, err)
	return fmt.Sprintf(`CONNECT {"jwt":%q,"sig":%q,"verbose":false,"headers":true,"no_responders":true,"protocol":1}`, right.JWT, base64.RawURLEncoding.EncodeToString(signature))
}

// send says some lines, and waits until the server has dealt with them or has
// hung up. It returns what the server answered.
func (w *wire) send(t *testing.T, lines ...string) (answers string) {
	t.Helper()
	_, err := io.WriteString(w, strings.Join(append(lines, "PING"), "\r\n")+"\r\n")
	if err != nil {
		return "hung up"
	}
	for {
		line, err := w.r.ReadString('\n')
		if err != nil {
			return answers + "hung up"
		}
		if line == "PONG\r\n" {
			return answers
		}
		if !strings.HasPrefix(line, "INFO ") { // which comes when the server likes
			answers += line
		}
	}
}

// TestSubscribersOnTheWire: nor do lines that no client sends reach anything.
func TestSubscribersOnTheWire(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]embed.Options{
		"anybody may connect": {}, "nobody else may connect": {User: "ops", Password: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			a := embeddedAudience(t, o)
			mint := func(session string) subscriber.Right {
				right, err := a.minter.Mint(session, 0, 0)
				require.NoError(t, err)
				return right
			}
			before := a.stored(t)
			for _, attack := range [][]string{
				{"SUB helix.live.victim 1"}, {"sub\thelix.live.victim\t1"}, {"SUB helix.live.own helix.live.victim 1"}, {"SUB helix.live.victim helix.live.own 1"},
				{"SUB helix.live.own\x00 1"}, {"SUB helix.live.own\x00.> 1"}, {"SUB helix.live.victim\x00 1"}, {"SUB \x00 1"}, {"SUB helix.live.own.. 1"},
				{"SUB helix.live..victim 1"}, {"SUB .helix.live.victim 1"}, {"SUB helix.live.o\u200bwn 1"}, {"SUB helix.live.own,helix.live.victim 1"},
				{"SUB helix.live.>> 1"}, {"SUB helix.live.** 1"}, {"SUB helix.live.own* 1"}, {"SUB helix.live.* helix.live.own 1"}, {"SUB >\t>\t1"},
				{"SUB $JS.API.> 1", "SUB _INBOX.> 2"}, {"SUB $SYS.> 1"}, {"RS+ HELIX helix.live.victim"}, {"LS+ helix.live.victim"}, {"A+ HELIX"},
				{"PUB helix.log.0.own 1", "x"}, {"PUB helix.live.own helix.live.own 1", "x"}, {"PUB $JS.API.INFO helix.live.own 0", ""},
				{"HPUB helix.log.0.own 12 13", "NATS/1.0\r\n\r\nx"}, {"PUB $JS.API.DIRECT.GET.HELIX_LOG_0.helix.log.0.victim helix.live.own 0", ""},
				{"LMSG helix.log.0.own 1", "x"}, {"RMSG HELIX helix.log.0.own 1", "x"},
				{`CONNECT {"user":"helixd inside","pass":""}`, "SUB > 1"}, {`CONNECT {"user":"helixd inside","jwt":""}`, "SUB > 1"},
				{`CONNECT {"jwt":"","sig":"","user":"","pass":""}`, "SUB $JS.API.> 1", "SUB helix.log.> 2"},
				{`CONNECT {"account":"HELIX"}`, "SUB > 1"}, {`CONNECT {"account":"HELIX","new_account":true}`, "SUB > 1"},
			} {
				w := dialWire(t, a.urls["TCP"])
				require.Empty(t, w.send(t, w.connect(t, mint(own)), "SUB "+layout.LiveSubject(own)+" own"))
				answers := w.send(t, attack...)
				a.say(t, victim, "secret")
				before++
				_, err := a.admin.Request("$JS.API.INFO", nil, time.Minute)
				require.NoError(t, err)
				answers += w.send(t)
				require.NotContains(t, answers, "secret", "%q", attack)
				require.NotContains(t, answers, "account_info", "%q", attack)
				require.NotContains(t, answers, "MSG ", "%q", attack)
				w.Close()
			}
			require.Equal(t, before, a.stored(t), "nothing else was stored")

			// A second right on one connection is the other one instead.
			w := dialWire(t, a.urls["TCP"])
			require.Empty(t, w.send(t, w.connect(t, mint(own)), "SUB helix.live.own 1"))
			require.Empty(t, w.send(t, w.connect(t, mint("third")), "SUB helix.live.third 2"))
			a.say(t, own, "secret")
			a.say(t, "third", "mine")
			answers := w.send(t)
			require.NotContains(t, answers, "secret")
			require.Contains(t, answers, "MSG helix.live.third 2")

			// A signature is for one connection.
			first, second := dialWire(t, a.urls["TCP"]), dialWire(t, a.urls["TCP"])
			require.Contains(t, second.send(t, first.connect(t, mint(own))), "Authorization Violation")
			// Who has shown nothing hears nothing.
			bare := dialWire(t, a.urls["TCP"])
			require.Contains(t, bare.send(t, "SUB helix.live.own 1"), "hung up")
		})
	}
}
