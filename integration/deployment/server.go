package deployment

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Server is where a NATS server takes clients.
type Server struct{ Address, User, Password string }

// askTimeout bounds a request to a server.
const askTimeout = 3 * time.Second

// ask sends a request of JetStream's API and decodes the answer. It speaks the
// protocol itself: importing a client is for adapters, and this is all there is
// to it.
func (s Server) ask(ctx context.Context, subject, body string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	inbox := "_INBOX." + rand.Text() // others ask, too
	_, err = fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB %s 1\r\nPUB $JS.API.%s %s %d\r\n%s\r\n",
		s.User, s.Password, inbox, subject, inbox, len(body), body)
	if err != nil {
		return err
	}
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "MSG" && fields[0] != "HMSG" && fields[0] != "-ERR":
			continue
		case fields[0] == "-ERR":
			return errors.New(strings.TrimSpace(line))
		case fields[0] == "HMSG":
			return errors.New("nobody answers " + subject)
		}
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return err
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(in, raw); err != nil {
			return err
		}
		var refusal struct {
			Error *struct{ Description string }
		}
		if err := json.Unmarshal(raw, &refusal); err != nil {
			return err
		}
		if refusal.Error != nil {
			return errors.New(subject + ": " + refusal.Error.Description)
		}
		return json.Unmarshal(raw, answer)
	}
}
