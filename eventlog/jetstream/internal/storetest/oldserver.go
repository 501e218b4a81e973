package storetest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// OldServer implements as much of the protocol as a connection needs, and reports the
// given version.
func OldServer(t testing.TB, version string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO {\"server_id\":\"old\",\"server_name\":\"old\",\"version\":%q,\"proto\":1,"+
					"\"headers\":true,\"jetstream\":true,\"max_payload\":1048576}\r\n", version)
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "PING") {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			})
		}
	})
	return "nats://" + l.Addr().String()
}
