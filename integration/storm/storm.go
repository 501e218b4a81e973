package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// patience is how long all clients may take to be current again.
const patience = 5 * time.Minute

// storm is one run of the program.
type storm struct {
	options
	ctx    context.Context
	d      *deployment.Deployment
	load   *load
	crowds crowds
	watch  *watch
	report *report
}

func run(ctx context.Context, o options, folder string) (err error) {
	s := &storm{options: o, ctx: ctx}
	connections := o.clients + 2*o.sessions + spareFiles // all clients are at one node while the other is dead, with the producers
	want := uint64(2 * connections)                      // of a node: it takes connections for half of its files
	files, err := raiseFiles(want)
	if err != nil {
		return err
	}
	if files < want {
		s.clients = max(1, o.clients-int(want-files)/2)
		deployment.Say("this system allows %d open files in a process: %d clients instead of %d", files, s.clients, o.clients)
	}
	s.report = newReport(s.options, files)
	binaries, err := deployment.Build(ctx, folder, o.Helixd, true)
	if err != nil {
		return err
	}
	limits := fmt.Sprintf("\nlimits: {connections: %d, streams: 100000}\n", connections)
	if s.d, err = deployment.Outside(binaries, folder, 1, 2, limits); err != nil {
		return err
	}
	defer s.d.Close()
	deployment.Say("starting a NATS server and two nodes")
	if err := s.d.Start(ctx); err != nil {
		return err
	}
	s.report.durability = s.d.Durability
	s.crowds, err = startCrowds(ctx, s.options.crowds)
	defer s.crowds.stop()
	if err != nil {
		return err
	}
	return errors.Join(s.play(), s.report.write(os.Stdout))
}

// play plays all phases.
func (s *storm) play() error {
	s.load = newLoad(s.options, s.d.Nodes)
	if err := s.load.begin(s.ctx); err != nil {
		return err
	}
	s.watch = startWatch(s.ctx, s.d)
	defer s.watch.stop()
	if err := s.quiet("no client"); err != nil {
		return err
	}
	whole, giveUp := context.WithCancel(s.ctx)
	pace, stop := context.WithCancel(whole)
	defer s.load.busy.Wait()
	defer giveUp()
	defer stop()
	s.load.keepPace(pace, whole)
	for _, step := range []func() error{s.join, s.kill, s.cut} {
		if err := step(); err != nil {
			return err
		}
	}
	stop()
	s.load.busy.Wait()
	return s.check()
}

// join has all clients come.
func (s *storm) join() error {
	deployment.Say("%d clients come", s.clients)
	began := time.Now()
	hosts := make([]string, len(s.d.Nodes))
	for i, n := range s.d.Nodes {
		hosts[i] = strings.TrimPrefix(n.URL, "http://")
	}
	sum, err := s.crowds.each(func(i int) order {
		first := s.clients * i / len(s.crowds)
		return order{Do: orderJoin, Nodes: hosts, Sessions: s.load.sessions(), First: first, Count: s.clients*(i+1)/len(s.crowds) - first}
	})
	if err != nil {
		return err
	}
	if sum.Connected != s.clients {
		return fmt.Errorf("%d of %d clients are connected", sum.Connected, s.clients)
	}
	deployment.Say("they took %s", time.Since(began).Round(100*time.Millisecond))
	return s.quiet("all clients, half on each node")
}

// kill kills a node, whose clients go to the other one, and starts it again.
func (s *storm) kill() error {
	victim := s.d.Nodes[1]
	deployment.Say("%s is killed", victim.Name)
	began := time.Now()
	if _, err := s.crowds.tell(order{Do: orderMark, At: began.UnixNano()}); err != nil {
		return err
	}
	victim.Kill()
	if err := s.recovered("one node SIGKILLed", began); err != nil {
		return err
	}
	if err := s.quiet("all clients on the other node"); err != nil {
		return err
	}
	if err := victim.Start(); err != nil {
		return err
	}
	if _, err := victim.Ready(s.ctx); err != nil {
		return err
	}
	return s.quiet("the node is back, without clients")
}

// cut cuts all connections at once. Each client comes back to the node that it
// came to first.
func (s *storm) cut() error {
	deployment.Say("all connections are cut")
	began := time.Now()
	if _, err := s.crowds.tell(order{Do: orderCut, At: began.UnixNano()}); err != nil {
		return err
	}
	if err := s.recovered("all connections cut", began); err != nil {
		return err
	}
	return s.quiet("all clients, half on each node")
}

// recovered waits until all clients are there and those that were not are
// current again.
func (s *storm) recovered(what string, began time.Time) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, patience, fmt.Errorf("%s: not all clients are current again within %s", what, patience))
	defer cancel()
	var sum answer
	err := deployment.Until(ctx, 250*time.Millisecond, func() (_ bool, err error) {
		sum, err = s.crowds.tell(order{Do: orderStatus})
		return sum.Broken > 0 && sum.Settled == sum.Broken && sum.Connected == s.clients, err
	})
	if err != nil {
		return fmt.Errorf("%w: %d connected, %d of %d are current", err, sum.Connected, sum.Settled, sum.Broken)
	}
	deployment.Say("all are current, and have heard of something new, after %s", time.Since(began).Round(10*time.Millisecond))
	times, err := s.crowds.tell(order{Do: orderTimes})
	if err != nil {
		return err
	}
	s.report.came(what, times)
	return s.report.looked(what, s.watch.next(), nil)
}

// quiet leaves everything alone for a moment and then looks at it.
func (s *storm) quiet(with string) error {
	s.watch.next()
	if err := deployment.Sleep(s.ctx, max(s.calm, 5*lookEvery)); err != nil {
		return err
	}
	return s.report.looked(with, s.watch.next(), s.watch.resident())
}

// check waits until every client has all chunks of its session.
func (s *storm) check() error {
	last := make([]int, len(s.load.all))
	total := 0
	for i, p := range s.load.all {
		last[i] = p.last
		total += p.last
	}
	ctx, cancel := context.WithTimeoutCause(s.ctx, patience, errors.New("some clients do not get all chunks"))
	defer cancel()
	var sum answer
	err := deployment.Until(ctx, 100*time.Millisecond, func() (_ bool, err error) {
		sum, err = s.crowds.tell(order{Do: orderCheck, Last: last})
		return sum.Behind == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w: %d clients lag", err, sum.Behind)
	}
	s.report.chunks, s.report.received, s.report.again = total, sum.Chunks, int(s.load.again.Load())
	return nil
}
