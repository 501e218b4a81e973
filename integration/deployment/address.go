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
)

// given are the ports that this process has handed out.
var given struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddresses are n different ones of the loopback interface on which nobody
// listens now. This process gets none of them a second time.
func FreeAddresses(n int) ([]string, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[int]bool{}
	}
	var all []string
	for range lastPort - firstPort {
		if len(all) == n {
			return all, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // somebody's
		}
		l.Close()
		given.ports[port] = true
		all = append(all, address)
	}
	return nil, fmt.Errorf("there are no %d free ports between %d and %d", n, firstPort, lastPort)
}

// FreeAddress is one of those.
func FreeAddress() (string, error) {
	all, err := FreeAddresses(1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}
