package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestForget(t *testing.T) {
	log := logmemory.New()
	x := &index{log: log}
	m := newManager(t, memory.Options{Log: log, Index: x})
	draft := memory.Draft{Scope: ada, Key: "k", Content: "Ada likes tea."}
	saved, err := m.Save(t.Context(), draft)
	require.NoError(t, err)
	require.NoError(t, m.Forget(t.Context(), ada, saved.ID))
	require.Empty(t, search(t, m, "tea").Hits)
	for _, behind := range []bool{false, true} {
		x.behind = behind
		require.ErrorIs(t, m.Forget(t.Context(), ada, saved.ID), readmodel.ErrNoMemory, "it is forgotten already")
		require.ErrorIs(t, m.Forget(t.Context(), ada, "nothing"), readmodel.ErrNoMemory)
		require.ErrorIs(t, m.Forget(t.Context(), eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"}, "x"), readmodel.ErrNoMemory)
		_, err = m.Save(t.Context(), draft)
		require.ErrorIs(t, err, readmodel.ErrForgotten, "a try again does not bring it back")
		require.ErrorIs(t, err, readmodel.ErrNoMemory)
		require.Equal(t, []string{"memory_saved", "memory_embedded", "memory_forgotten"}, typesOf(t, log, ada))
	}
	_, err = m.Erase(t.Context(), ada)
	require.NoError(t, err)
	_, err = m.Save(t.Context(), draft)
	require.NoError(t, err, "with a scope that is erased its keys are free")
}

// TestAVectorOfWhatIsForgotten comes late, and changes nothing.
func TestAVectorOfWhatIsForgotten(t *testing.T) {
	log := logmemory.New()
	goOn := make(chan struct{})
	slow := newEmbedder(func(context.Context, []string) error {
		<-goOn
		return nil
	})
	m := newManager(t, memory.Options{Log: log, Embedder: slow, Executor: memory.Background(1)})
	saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Key: "k", Content: "A secret."})
	require.NoError(t, err)
	require.NoError(t, m.Forget(t.Context(), ada, saved.ID))
	close(goOn)
	require.NoError(t, m.Shutdown(t.Context()))
	require.Empty(t, search(t, m, "secret").Hits)
	_, err = m.Save(t.Context(), memory.Draft{Scope: ada, Key: "k", Content: "Another text."})
	require.ErrorIs(t, err, readmodel.ErrForgotten)
}

// TestWhatIsGoneBeforeItsTurn: a text that waits to be embedded when it is
// forgotten or erased never leaves the node.
func TestWhatIsGoneBeforeItsTurn(t *testing.T) {
	for name, goes := range map[string]func(m *memory.Manager, id string) error{
		"forgotten": func(m *memory.Manager, id string) error { return m.Forget(t.Context(), ada, id) },
		"erased": func(m *memory.Manager, _ string) error {
			_, err := m.Erase(t.Context(), ada)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			e := newEmbedder(func(context.Context, []string) error {
				<-goOn
				return nil
			})
			m := newManager(t, memory.Options{Embedder: e, Executor: memory.Background(1)})
			bob := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"}
			_, err := m.Save(t.Context(), memory.Draft{Scope: bob, Content: "Bob likes tea."})
			require.NoError(t, err)
			require.NoError(t, goes(m, save(t, m, "A secret.")[0]))
			close(goOn)
			require.NoError(t, m.Shutdown(t.Context()))
			require.Equal(t, [][]string{{"Bob likes tea."}}, e.asked())
		})
	}
}

// TestErasedIsErased: what was under way when a scope was erased does not come
// back, not even as numbers.
func TestErasedIsErased(t *testing.T) {
	for name, again := range map[string]bool{"": false, "and begun again": true} {
		t.Run(name, func(t *testing.T) {
			log := logmemory.New()
			asked, goOn := make(chan struct{}), make(chan struct{})
			slow := newEmbedder(func(ctx context.Context, texts []string) error {
				if texts[0] == "A secret." {
					close(asked)
					<-goOn
				}
				return nil
			})
			m := newManager(t, memory.Options{Log: log, Embedder: slow, Executor: memory.Background(2)})
			saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: "A secret."})
			require.NoError(t, err)
			require.Equal(t, readmodel.EmbeddingPending, saved.EmbeddingStatus)
			<-asked
			erasure, err := m.Erase(t.Context(), ada)
			require.NoError(t, err)
			require.Equal(t, eventlog.Erasure{Records: 1}, erasure)
			if again {
				_, err := log.Append(t.Context(), ada.LogID(), 0, []eventlog.Entry{logtest.Text(ada.LogID(), "another life")})
				require.NoError(t, err)
			}
			close(goOn)
			require.NoError(t, m.Shutdown(t.Context()))
			if again {
				require.Len(t, typesOf(t, log, ada), 1)
				return
			}
			_, err = log.Head(t.Context(), ada.LogID())
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			_, err = m.Erase(t.Context(), ada)
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			require.Empty(t, search(t, m, "secret").Hits)
		})
	}
}
