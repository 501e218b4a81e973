//go:build unix

package main

import (
	"net"
	"sync"
)

// proxy is a network link: what connects to its address reaches the target,
// unless the link is cut or stalls.
type proxy struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	flows chan struct{} // closed while bytes pass
	cut   bool
	conns map[net.Conn]bool // nil when closed
}

// linkHost is the address at which links listen and from which they connect.
// NATS servers tell each other of routes by the address that they see and the
// port that the other one names: with this host such a route leads nowhere, and
// not around the link.
const linkHost = "127.0.0.2"

// newProxy returns a link to a target, from its own port, which the system
// gives and no target has: see linkHost.
func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", linkHost+":0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, listener: l, flows: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(p.flows)
	p.done.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.join(near) })
	}
}

// join passes bytes both ways until either side is closed.
func (p *proxy) join(near net.Conn) {
	defer near.Close()
	if !p.keep(near) {
		return
	}
	defer p.drop(near)
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(linkHost)}}
	far, err := from.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.keep(far) {
		return
	}
	defer p.drop(far)
	p.done.Go(func() {
		p.pass(far, near)
		near.Close()
		far.Close()
	})
	p.pass(near, far)
}

func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			flows := p.flows
			p.mu.Unlock()
			<-flows
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// keep remembers a connection, unless the link is cut.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.conns == nil {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// sever closes all connections and refuses further ones.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.Close()
	}
}

// stall holds back all bytes, in both directions; without an error.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flows:
		p.flows = make(chan struct{})
	default: // it stalls already
	}
}

// heal undoes sever and stall.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	select {
	case <-p.flows:
	default:
		close(p.flows)
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.sever()
	p.mu.Lock()
	p.conns = nil
	p.mu.Unlock()
	p.heal()
	p.done.Wait()
}
