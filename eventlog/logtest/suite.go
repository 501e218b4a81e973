// Package logtest is the contract suite of eventlog.Log. Every implementation
// runs it.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Run checks that the logs that open returns keep the contract. Each test opens one of
// its own, and they run in parallel: most of their time is waiting.
func Run(t *testing.T, open func(t *testing.T) eventlog.Log) {
	for _, tc := range []struct {
		name string
		test func(*testing.T, eventlog.Log)
	}{
		{"append compares and swaps", appendCAS},
		{"a batch is all or nothing and has no gaps", appendBatch},
		{"records come back byte for byte", roundTrip},
		{"reads are complete and bounded", reads},
		{"a long session is read whole", longRead},
		{"cursors and sessions that do not exist are errors", badCursors},
		{"odd session ids keep to themselves", oddIDs},
		{"bad session ids are refused", badIDs},
		{"sessions are listed", listing},
		{"followers catch up and go live", follow},
		{"followers are independent", followers},
		{"a follower can leave out one writer's records, and gets every other", withoutWriter},
		{"an attachment misses nothing between what is read and what is live", attachment},
		{"a closed log ends its followers", closing},
		{"the writer fences others", fencing},
		{"a zombie that wakes after a takeover writes nothing", zombie},
		{"the writer continues after foreign records", foreignRecords},
		{"concurrent appends keep one order", concurrentAppends},
		{"many sessions at once do not mix", manySessions},
		{"a lost answer is not a second append", lostAnswer},
		{"a lost request is sent again", lostRequest},
		{"an unresolved append breaks the writer", unresolved},
		{"a request that arrives twice is stored once", duplicated},
		{"a request that arrives late is not stored again", delayed},
		{"a retry may overtake its first try", reordered},
		{"what was sent once is sent again as it was", frozen},
		{"foreign records come between the tries of an append", foreignBetweenTries},
		{"of several claimants at once one continues", claimants},
		{"what waits goes together in the next append", gathers},
		{"a merge is read as it is stored and changes no other value", mergedValues},
		{"an end takes out what must not follow it", refusals},
		{"faults, rivals and producers at random", simulation},
		{"an ended stream takes a new turn only", streamStates},
		{"truncation hides records and keeps them", truncation},
		{"large payloads come back whole", largePayloads},
		{"a copy is of one moment", copying},
		{"an erased session is gone for everybody", erasure},
		{"who knew an erased session writes nothing into the next of its id", recreation},
		{"a follower that missed an erasure ends", missedErasure},
		{"appends, erasures, readers and followers in any order", lifetimesInAnyOrder},
		{"an append after a head that does not exist conflicts", aheadOfHead},
		{"an update is decided on the head that it follows, and appended once", updates},
		{"clean-up by step keeps to the run", cleanupByStep},
		{"clean-up by step resolves what it truncates", cleanupRanges},
		{"clean-up by step takes every kind of chunk", cleanupOfEveryKind},
		{"clean-up and rollback judge what others write meanwhile", resolvedAgain},
		{"a rollback truncates the tree after a record", rollback},
		{"a rollback refuses what can't be restored", rollbackRefusals},
		{"a rollback supersedes the run that is under way", rollbackFences},
		{"every state of the effective stream can be read", effectiveAtAnySequence},
		{"G1 concurrent writers have one order", concurrentWriters},
		{"G2 an attached reader sees each chunk once and in order", attachedReaders},
		{"G3 an end is for good and comes last", terminalStates},
		{"G3 a rollback takes ends back", rolledBackEnds},
		{"G4 an attached reader is notified of truncation", truncationIsTold},
		{"G5 a slow reader blocks nobody", slowReaders},
		{"G6 a pause ends no reader", pausedStreams},
		{"readers end with their context", readersEnd},
		{"a feed yields the records of all sessions", feeds},
		{"a feed begins after any position", feedPositions},
		{"a feed yields positions whose records are gone", feedMarks},
		{"a feed ends with its context and its log", feedsEnd},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.test(t, open(t))
		})
	}
}

// within is the longest that a test waits for what must happen.
const within = 5 * time.Minute

func ctxOf(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// Text returns a text chunk as an entry of the given session.
func Text(session, text string) eventlog.Entry {
	e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: text, Base: eventlog.Base{
		AgentID: session, AgentType: "writer", Timestamp: 1, Step: 1,
	}}, eventlog.Labels{Run: "run-1"})
	if err != nil {
		panic(err)
	}
	return e
}

// Fact returns a fact as an entry of the given session.
func Fact(session string, f fact.Fact) eventlog.Entry {
	e, err := eventlog.NewFact(session, f, eventlog.Labels{})
	if err != nil {
		panic(err)
	}
	return e
}

func base(session string) fact.Base {
	return fact.Base{SessionID: session, Timestamp: 1}
}

// append1 appends texts to a session whose last sequence is expected.
func append1(t *testing.T, log eventlog.Log, session string, expected uint64, texts ...string) uint64 {
	t.Helper()
	entries := make([]eventlog.Entry, len(texts))
	for i, s := range texts {
		entries[i] = Text(session, s)
	}
	last, err := put(ctxOf(t), log, session, expected, entries)
	require.NoError(t, err)
	return last
}

// put appends to a session to which nobody else does. What a busy machine or an
// election leaves open is tried again: the expectation can be met once only.
func put(ctx context.Context, log eventlog.Log, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	for unsure := false; ; unsure = true {
		last, err := log.Append(ctx, session, expected, entries)
		if refused, ok := errors.AsType[*eventlog.ConflictError](err); unsure && ok && refused.Head > expected {
			return refused.Head, nil // an earlier try has arrived
		}
		if !errors.Is(err, eventlog.ErrOutcomeUnknown) || ctx.Err() != nil {
			return last, err
		}
	}
}

// AppendNext appends entries of another writer after the session's head, if there is one.
func AppendNext(t testing.TB, log eventlog.Log, session string, entries ...eventlog.Entry) (last uint64) {
	t.Helper()
	head, err := log.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	last, err = eventlog.AppendOnce(t.Context(), log, session, fmt.Sprint("w", head), head, entries)
	require.NoError(t, err)
	return last
}

// Records are all records of a session.
func Records(t testing.TB, log eventlog.Log, session string) []eventlog.Record {
	t.Helper()
	records, err := collectErr(log.Read(t.Context(), session, 0, 0))
	require.NoError(t, err)
	return records
}

func collect(t *testing.T, seq iter.Seq2[eventlog.Record, error]) []eventlog.Record {
	t.Helper()
	records, err := collectErr(seq)
	require.NoError(t, err)
	return records
}

func collectErr(seq iter.Seq2[eventlog.Record, error]) (records []eventlog.Record, err error) {
	for r, err := range seq {
		if err != nil {
			return records, err
		}
		records = append(records, r)
	}
	return records, nil
}

// texts returns the text deltas among records.
func texts(t *testing.T, records []eventlog.Record) []string {
	t.Helper()
	out := []string{}
	for _, r := range records {
		if r.Kind != eventlog.KindChunk {
			continue
		}
		c, err := r.Chunk()
		require.NoError(t, err)
		if d, ok := c.(*eventlog.TextDelta); ok {
			out = append(out, d.Delta)
		}
	}
	return out
}

func numbered(from, to int) []string {
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}
