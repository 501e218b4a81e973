//go:build unix

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// leader returns the node that leads the log's stream, or nil if no node
// knows of one.
func (t *trial) leader() *node {
	for _, asked := range t.cluster {
		name, err := leaderBy(asked.nats)
		if err != nil {
			continue
		}
		for _, n := range t.cluster {
			if n.name == name {
				return n
			}
		}
	}
	return nil
}

// leaderBy asks a NATS server, in its protocol, which server leads the log's
// stream. It is the only thing that is asked here, so it needs no library.
func leaderBy(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	inbox := "_INBOX." + rand.Text() // others ask at the same time
	_, err = fmt.Fprintf(c, "CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":false,\"headers\":true}\r\nSUB %s 1\r\nPUB $JS.API.STREAM.INFO.HELIX_LOG_0 %[3]s 0\r\n\r\n",
		natsUser, natsPassword, inbox)
	if err != nil {
		return "", err
	}
	for in := bufio.NewReader(c); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "MSG" {
			continue
		}
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return "", err
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(in, raw); err != nil {
			return "", err
		}
		var info struct{ Cluster struct{ Leader string } }
		err = json.Unmarshal(raw, &info)
		return info.Cluster.Leader, err
	}
}
