//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// Kinds of faults.
const (
	kindKill    = "kill"    // SIGKILL, and a start later
	kindStop    = "stop"    // SIGINT, and a start later
	kindLeader  = "leader"  // SIGKILL or SIGINT of the node that leads the log's stream
	kindFreeze  = "freeze"  // SIGSTOP for longer than a lease: the zombie wakes
	kindLink    = "link"    // between two nodes: cut, or nothing passes
	kindIsland  = "island"  // all of one node's links to others
	kindClients = "clients" // the link between clients and a node
	kindDisk    = "disk"    // full
	kindPower   = "power"   // what was not synced is gone
	kindUpgrade = "upgrade" // see roll
)

var (
	kinds      = []string{kindKill, kindStop, kindLeader, kindFreeze, kindLink, kindIsland, kindClients, kindDisk, kindPower}
	kindsOfOne = []string{kindKill, kindStop, kindFreeze, kindClients, kindDisk, kindPower}
)

// fault is one thing that is broken, for a while.
type fault struct {
	at, lasts   time.Duration // from the beginning of the faults
	kind        string
	node, other int
	hard        bool // SIGKILL and not SIGINT; cut and not stalled
}

func (f fault) String() string {
	return fmt.Sprintf("%7.2fs %-7s for %5.2fs node %d other %d hard %t", f.at.Seconds(), f.kind, f.lasts.Seconds(), f.node+1, f.other+1, f.hard)
}

// lasts is how long faults of a kind last, in milliseconds: at least, and up to
// that much more. Other nodes take a frozen one for dead after 2 s.
var lasts = map[string][2]int64{
	kindKill: {100, 2500}, kindStop: {100, 2500}, kindLeader: {100, 2500}, kindFreeze: {5000, 7000}, kindLink: {1000, 7000},
	kindIsland: {1000, 7000}, kindClients: {500, 4000}, kindDisk: {2000, 4000}, kindPower: {100, 1000},
}

// The pause between two faults, in milliseconds, if they don't overlap. A run
// that five nodes in a row have died with is given up: the only node has to
// live for longer.
var gap, gapOfOne = [2]int64{500, 2000}, [2]int64{2000, 3000}

// plan draws all faults of a seed. Every kind comes before one comes again. One
// in five begins before the one before it is healed: with three nodes there is
// no quorum then, now and again.
func plan(o options) []fault {
	r := deployment.Random(o.seed, "faults", 0)
	gap := gap
	if o.nodes == 1 {
		gap = gapOfOne
	}
	draw := func(of [2]int64) time.Duration { return time.Duration(of[0]+r.Int64N(of[1])) * time.Millisecond }
	var all []fault
	var left []string
	for at, misfits := draw(gap), 0; misfits < len(o.faults); {
		if len(left) == 0 {
			left = slices.Clone(o.faults)
			r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		f := fault{at: at, kind: left[0], node: r.IntN(o.nodes), hard: r.IntN(2) == 0, lasts: draw(lasts[left[0]])}
		if f.kind == kindDisk {
			f.node = o.nodes - 1 // see disks
		}
		if o.nodes > 1 {
			f.other = (f.node + 1 + r.IntN(o.nodes-1)) % o.nodes
		}
		left = left[1:]
		if f.at+f.lasts > o.span {
			misfits++
			continue
		}
		all = append(all, f)
		if pause := draw(gap); r.IntN(5) > 0 {
			at += f.lasts + pause
		} else {
			at += min(pause, f.lasts)
		}
	}
	return all
}

// breakAll breaks one thing after the other, and returns when the time is finished
// and all is healed.
func (t *trial) breakAll() {
	if t.from != "" {
		t.roll()
		return
	}
	began := time.Now()
	if len(t.story) > 0 {
		t.tell()
		return
	}
	faults := plan(t.options)
	var open sync.WaitGroup
	for i, f := range faults {
		if !t.Sleep(time.Until(began.Add(f.at))) {
			break
		}
		open.Go(func() {
			if err := t.breakOne(i+1, f); err != nil {
				t.Violate("", nil, "fault %d (%s): %v", i+1, f.kind, err)
			}
		})
	}
	t.Sleep(time.Until(began.Add(t.span)))
	open.Wait()
	deployment.Say("%d faults", len(faults))
}

// breakOne breaks something, waits and heals it, also when the trial ends.
func (t *trial) breakOne(number int, f fault) error {
	n := t.members()[f.node]
	say := func(format string, args ...any) {
		deployment.Say("fault %d: %s", number, fmt.Sprintf(format, args...))
	}
	switch f.kind {
	case kindLink, kindIsland:
		t.breakLinks(f, say)
		return nil
	case kindClients:
		say("clients of %s: %s for %s", n.Name, f.manner(), f.lasts)
		breakLink(n.link, f.hard)
		t.Sleep(f.lasts)
		n.link.heal()
		say("clients of %s: healed", n.Name)
		return nil
	case kindLeader:
		if n = t.leader(); n == nil {
			n = t.members()[f.node]
			say("nobody leads the stream")
		}
	}
	n.at.Lock()
	defer n.at.Unlock()
	if t.ctx.Err() != nil {
		return nil
	}
	switch f.kind {
	case kindFreeze:
		say("%s: SIGSTOP for %s", n.Name, f.lasts)
		n.Signal(syscall.SIGSTOP)
		t.Sleep(f.lasts)
		n.Signal(syscall.SIGCONT)
		say("%s: SIGCONT", n.Name)
		return nil
	case kindDisk:
		return t.fillDisk(n, f, say)
	case kindPower:
		return t.losePower(n, f, say)
	}
	if f.kind == kindKill || f.kind == kindLeader && f.hard {
		say("%s: SIGKILL, back in %s", n.Name, f.lasts)
		n.kill()
	} else {
		say("%s: SIGINT, back in %s", n.Name, f.lasts)
		if err := n.interrupt(); err != nil {
			return err
		}
	}
	t.Sleep(f.lasts)
	return t.restart(n, say)
}

func (t *trial) restart(n *node, say func(string, ...any)) error {
	if t.ctx.Err() != nil {
		return nil
	}
	say("%s: start", n.Name)
	return n.start()
}

func (f fault) manner() string {
	if f.hard {
		return "cut"
	}
	return "stalled"
}

func breakLink(p *proxy, hard bool) {
	if hard {
		p.sever()
	} else {
		p.stall()
	}
}

// breakLinks breaks the links of a node to another one or to all.
func (t *trial) breakLinks(f fault, say func(string, ...any)) {
	what := fmt.Sprintf("link of %s and %s", t.members()[f.node].Name, t.members()[f.other].Name)
	if f.kind == kindIsland {
		what = "links of " + t.members()[f.node].Name
	}
	var links []*proxy
	for i, a := range t.members() {
		for j := range t.members() {
			if i == j || i != f.node && j != f.node || f.kind == kindLink && i != f.other && j != f.other {
				continue
			}
			at := j
			if j > i {
				at-- // there is no link to itself
			}
			links = append(links, a.peers[at])
		}
	}
	say("%s: %s for %s", what, f.manner(), f.lasts)
	for _, l := range links {
		breakLink(l, f.hard)
	}
	t.Sleep(f.lasts)
	for _, l := range links {
		l.heal()
	}
	say("%s: healed", what)
}

// readyAgain is how long a node may take to continue when its disk has room again,
// unless it lacks the others.
const readyAgain = 20 * time.Second

// fillDisk fills a node's disk. When there is room again, the node continues by itself.
// One that can't is started again, as its operator would.
func (t *trial) fillDisk(n *node, f fault, say func(string, ...any)) error {
	say("%s: disk full for %s", n.Name, f.lasts)
	n.expectEnd(true)
	if err := fill(n.data); err != nil {
		return err
	}
	t.Sleep(f.lasts)
	if err := empty(n.data); err != nil {
		return err
	}
	say("%s: there is room", n.Name)
	if n.over() {
		return t.restart(n, say)
	}
	if n.readyIn(readyAgain) {
		n.expectEnd(false)
		return nil
	}
	say("%s: is not ready: SIGINT", n.Name)
	_ = n.interrupt() // else it was killed
	return t.restart(n, say)
}

// losePower ends a node as a power loss does. What the process has answered
// before it stops has to be there again.
func (t *trial) losePower(n *node, f fault, say func(string, ...any)) error {
	n.expectEnd(true)
	n.Signal(syscall.SIGSTOP)
	memory, err := inMemory(n.data)
	if err != nil {
		return err
	}
	if err := cutPower(n.data); err != nil {
		return err
	}
	say("%s: power lost, back in %s", n.Name, f.lasts)
	n.kill()
	t.PowerFailed()
	if err := os.RemoveAll(memory); err != nil {
		return err
	}
	if err := powerUp(t.disks.image, n.data); err != nil {
		return err
	}
	t.Sleep(f.lasts)
	return t.restart(n, say)
}
