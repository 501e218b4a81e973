package lane

import (
	"slices"

	"github.com/helixd/helixd/agentloop/lab/result"
)

// byAgent are the places of a lane's decisions, by the agent.
func byAgent(l *result.Lane) map[string][]int {
	of := map[string][]int{}
	for i, d := range l.Decisions {
		of[d.Agent] = append(of[d.Agent], i)
	}
	return of
}

// Align gives the decisions of a driven lane the sequences of the observed ones that they repeat, in
// place of their own, which At has then, and the lane its prefix. It reports whether the lane repeats
// all of them and no others, model requests aside.
func Align(observed, driven *result.Lane) (same bool) {
	there := byAgent(observed)
	same = true
	for agent, places := range byAgent(driven) {
		repeats := true
		for n, at := range places {
			d := &driven.Decisions[at]
			d.At, d.Sequence = d.Sequence, 0
			if n >= len(there[agent]) {
				repeats = false
				continue
			}
			o := observed.Decisions[there[agent][n]]
			if repeats = repeats && (d.Same(o) || d.Kind == result.ModelRequest && o.Kind == result.ModelRequest); repeats {
				d.Sequence = o.Sequence
			}
		}
		same = same && repeats && len(places) == len(there[agent])
		delete(there, agent)
	}
	driven.Prefix = result.Prefix(driven.Decisions, result.Common(observed.Decisions, driven.Decisions))
	return same && len(there) == 0 && observed.Outcome == driven.Outcome
}

// Cut ends a driven lane where a person stopped the observed one, if it has decided the same until
// then.
func Cut(observed, driven *result.Lane) {
	there := byAgent(observed)
	lane := byAgent(driven)
	for agent, places := range there {
		if len(lane[agent]) < len(places) {
			return
		}
		for n, at := range places {
			d, o := driven.Decisions[lane[agent][n]], observed.Decisions[at]
			if !d.Same(o) && (d.Kind != result.ModelRequest || o.Kind != result.ModelRequest) {
				return
			}
		}
	}
	seen := map[string]int{}
	driven.Decisions = slices.DeleteFunc(driven.Decisions, func(d result.Decision) bool {
		seen[d.Agent]++
		return seen[d.Agent] > len(there[d.Agent])
	})
	driven.Unjudged, driven.Outcome, driven.Error, driven.Output = "", observed.Outcome, observed.Error, observed.Output
}

// Complete gives the observed model requests what a baseline that repeats them knows of them: the
// records have no prompt and no tools.
func Complete(observed *result.Lane, baseline result.Lane) {
	there := byAgent(&baseline)
	for agent, places := range byAgent(observed) {
		for n, at := range places {
			if n >= len(there[agent]) {
				break
			}
			if d, b := &observed.Decisions[at], baseline.Decisions[there[agent][n]]; d.Kind == result.ModelRequest && b.Kind == result.ModelRequest {
				d.Parts, d.Hash, d.Content = b.Parts, b.Hash, b.Content
			}
		}
	}
}
