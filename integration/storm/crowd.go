package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// crowdArgument makes a process of this program a crowd of clients.
const crowdArgument = "crowd"

// joiners is how many clients of a crowd come at the same time.
const joiners = 32

// crowd is many clients in a separate process, so that the nodes' memory and theirs can
// be distinguished.
type crowd struct {
	sessions int
	clients  []*follower

	mu        sync.Mutex
	violation string
}

// crowdMain obeys the program that started it until that ends.
func crowdMain() int {
	c := &crowd{}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		err := in.Decode(&o)
		if errors.Is(err, io.EOF) {
			return 0
		}
		if err == nil {
			err = out.Encode(c.obey(o))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "crowd:", err)
			return deployment.ExitFailed
		}
	}
}

func (c *crowd) obey(o order) (a answer) {
	switch o.Do {
	case orderJoin:
		c.join(o)
	case orderMark:
		for _, client := range c.clients {
			client.mark(time.Unix(0, o.At))
		}
	case orderCut:
		for _, client := range c.clients {
			client.mark(time.Unix(0, o.At))
		}
		for _, client := range c.clients {
			client.cut()
		}
	case orderTimes:
		for _, client := range c.clients {
			if back, current, ok := client.times(); ok {
				a.Back, a.Current = append(a.Back, back), append(a.Current, current)
			}
		}
	case orderCheck:
		for _, client := range c.clients {
			if client.got() != o.Last[client.number%c.sessions] {
				a.Behind++
			}
		}
	}
	for _, client := range c.clients {
		client.count(&a)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.Violation = c.violation
	return a
}

// join has the clients come. It returns when each has been let in once.
func (c *crowd) join(o order) {
	c.sessions = len(o.Sessions)
	for i := range o.Count {
		number := o.First + i
		// Both nodes have clients of every session.
		home := (number + number/len(o.Sessions)) % len(o.Nodes)
		c.clients = append(c.clients, &follower{
			crowd: c, number: number, session: o.Sessions[number%len(o.Sessions)], nodes: o.Nodes,
			home: home, at: home, in: make(chan struct{}),
		})
	}
	var all sync.WaitGroup
	for j := range joiners {
		all.Go(func() {
			for i := j; i < len(c.clients); i += joiners {
				go c.clients[i].follow(context.Background()) // until the process ends
				<-c.clients[i].in
			}
		})
	}
	all.Wait()
}

func (c *crowd) violate(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.violation == "" {
		c.violation = fmt.Sprintf(format, args...)
	}
}
