package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// crowds are the processes that the clients are in.
type crowds []*crowdProcess

type crowdProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	to  *json.Encoder
	out *json.Decoder
}

// startCrowds starts n processes, which end with ctx or with stop. Those that it
// started before an error have to be stopped, too.
func startCrowds(ctx context.Context, n int) (all crowds, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range n {
		c := &crowdProcess{cmd: exec.CommandContext(ctx, self, crowdArgument)}
		c.cmd.Stderr = os.Stderr
		if c.in, err = c.cmd.StdinPipe(); err != nil {
			return all, err
		}
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			return all, err
		}
		c.to, c.out = json.NewEncoder(c.in), json.NewDecoder(out)
		if err := c.cmd.Start(); err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (all crowds) stop() {
	for _, c := range all {
		c.in.Close() // then it ends
		_ = c.cmd.Wait()
	}
}

// each gives an order to all crowds at once, and sums up what they say. A
// violation is an error.
func (all crowds) each(what func(i int) order) (sum answer, err error) {
	answers, errs := make([]answer, len(all)), make([]error, len(all))
	var busy sync.WaitGroup
	for i, c := range all {
		busy.Go(func() {
			if errs[i] = c.to.Encode(what(i)); errs[i] == nil {
				errs[i] = c.out.Decode(&answers[i])
			}
		})
	}
	busy.Wait()
	for _, a := range answers {
		sum.add(a)
	}
	if sum.Violation != "" {
		errs = append(errs, fmt.Errorf("violation: %s", sum.Violation))
	}
	return sum, errors.Join(errs...)
}

// tell gives all the same order.
func (all crowds) tell(o order) (answer, error) { return all.each(func(int) order { return o }) }
