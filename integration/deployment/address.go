package deployment

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports that addresses are taken from: below those that systems give to outgoing
// connections. One of those might sit on the port of a server that is down for a
// moment, or, dialling it, reach itself.
const (
	firstPort = 20_000
	lastPort  = 32_000
	// blockPorts are given by one process, which listens on the first of them for
	// as long as it lives: another one, which looks who listens, would not see
	// what was given to a server that is yet to begin.
	blockPorts = 200
)

// given is where this process continues, and the blocks that it has.
var given struct {
	sync.Mutex
	next, end int
	blocks    []net.Listener
}

// FreeAddresses are n different ones of the loopback interface on which nobody
// listens now. No process on this machine gets one of them a second time while
// this one lives.
func FreeAddresses(n int) ([]string, error) {
	given.Lock()
	defer given.Unlock()
	var all []string
	for len(all) < n {
		if given.next == given.end {
			if err := takeBlock(); err != nil {
				return nil, err
			}
		}
		if l, err := listen(given.next); err == nil { // else it is somebody's
			all = append(all, l.Addr().String())
			l.Close()
		}
		given.next++
	}
	return all, nil
}

// takeBlock takes a block that no process has.
func takeBlock() error {
	for _, i := range rand.Perm((lastPort - firstPort) / blockPorts) {
		first := firstPort + i*blockPorts
		if l, err := listen(first); err == nil {
			given.blocks = append(given.blocks, l)
			given.next, given.end = first+1, first+blockPorts
			return nil
		}
	}
	return fmt.Errorf("there are no %d free ports between %d and %d", blockPorts, firstPort, lastPort)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// FreeAddress is one of those.
func FreeAddress() (string, error) {
	all, err := FreeAddresses(1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}
