package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/readmodel/words"
)

// Ranking by words has two steps: a quick, rough one picks candidates, and an exact one
// sorts them. Ranking by meaning compares all vectors.
const (
	// maxQuestionTerms bounds how many different words of a question are used.
	maxQuestionTerms = 256
	// maxPlaces bounds in how many memories the words are looked up, the rarest words
	// first: a word that many memories have says little. The memories that are found are
	// ranked by all words.
	maxPlaces = 2000
	// roughShare is how many candidates are picked for each memory that is wanted;
	// roughLeast is the minimum in all.
	roughShare = 4
	roughLeast = 100
)

// Candidates implements readmodel.Memories.
func (m *Models) Candidates(ctx context.Context, q readmodel.MemoryQuery) (readmodel.Answer[readmodel.MemoryCandidates], error) {
	if q.Limit < 1 || q.Limit > readmodel.MaxPage {
		return readmodel.Answer[readmodel.MemoryCandidates]{},
			&readmodel.QueryError{Field: "limit", Reason: fmt.Sprintf("must be between 1 and %d", readmodel.MaxPage)}
	}
	terms := words.Terms(q.Text)
	return ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (found readmodel.MemoryCandidates, err error) {
		c := candidates{ctx: ctx, tx: tx, q: q, vectors: m.file.vectors}
		if c.scope, err = scopeNumber(ctx, tx, q.Scope); err != nil || c.scope == 0 {
			return found, err
		}
		if err := tx.QueryRowContext(ctx, "SELECT head FROM trees WHERE root = ?", q.Scope.LogID()).Scan(&found.Head); err != nil {
			return found, err
		}
		if err := c.exclude(); err != nil {
			return found, err
		}
		byWords, err := c.byWords(terms)
		if err != nil {
			return found, err
		}
		byMeaning, err := c.byMeaning()
		if err != nil {
			return found, err
		}
		if found.ByWords, err = c.memories(byWords); err == nil {
			found.ByMeaning, err = c.memories(byMeaning)
		}
		return found, err
	})
}

// candidates is a question that is being answered.
type candidates struct {
	ctx   context.Context
	tx    *sql.Tx
	q     readmodel.MemoryQuery
	scope int64
	// vectors are kept between questions.
	vectors *vectorCache
	// unwanted are the numbers of the memories that the query excludes.
	unwanted map[int64]bool
}

// exclude looks up the memories that the query excludes, so that they take no place in
// the rankings: in a long conversation they are more than the others.
func (c *candidates) exclude() error {
	c.unwanted = map[int64]bool{}
	list, err := asArray(c.q.Exclude)
	if err != nil {
		return err
	}
	const text = "SELECT m.id FROM json_each(?) j CROSS JOIN memories m ON m.scope = ? AND m.memory = j.value"
	return each(c.ctx, c.tx, text, []any{list, c.scope}, func(row *sql.Rows) error {
		var memory int64
		err := row.Scan(&memory)
		c.unwanted[memory] = true
		return err
	})
}

// ranked is a memory's number and how well it fits.
type ranked struct {
	id    int64
	score float64
}

// term is a word of a question.
type term struct {
	text     string
	memories int // of the scope that have it
	weight   float64
}

// byWords ranks by BM25 over the words of the scope; of equal memories the newest is
// first.
func (c *candidates) byWords(words []string) ([]ranked, error) {
	if len(words) == 0 {
		return nil, nil
	}
	var memories, length float64
	err := c.tx.QueryRowContext(c.ctx, "SELECT memories, length FROM scopes WHERE id = ?", c.scope).Scan(&memories, &length)
	if err != nil {
		return nil, err
	}
	terms, err := c.terms(words, memories)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	rough, err := c.places(terms)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rough, better)
	ids := make([]int64, 0, len(rough))
	for _, r := range rough[:min(len(rough), c.rough())] {
		ids = append(ids, r.id)
	}
	return c.bm25(ids, terms, length/max(memories, 1))
}

// rough is how many candidates are picked.
func (c *candidates) rough() int { return max(roughShare*c.q.Limit, roughLeast) }

func better(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) }

// terms returns the words that memories of the scope have, the rarest first.
func (c *candidates) terms(words []string, memories float64) (terms []term, err error) {
	asked := distinct(words)
	few := make([]string, 0, min(len(asked), maxQuestionTerms))
	for _, word := range words {
		if asked[word] && len(few) < maxQuestionTerms {
			few = append(few, word)
			delete(asked, word)
		}
	}
	list, err := asArray(few)
	if err != nil {
		return nil, err
	}
	const text = "SELECT t.term, t.memories FROM json_each(?) j CROSS JOIN terms t ON t.scope = ? AND t.term = j.value ORDER BY t.memories, t.term"
	return terms, each(c.ctx, c.tx, text, []any{list, c.scope}, func(row *sql.Rows) error {
		var t term
		err := row.Scan(&t.text, &t.memories)
		n := float64(t.memories)
		t.weight = math.Log(1 + (memories-n+0.5)/(n+0.5))
		terms = append(terms, t)
		return err
	})
}

// places returns the memories that have the rarest terms, with the terms' weight. Of a
// term that many memories have it takes the newest.
func (c *candidates) places(terms []term) ([]ranked, error) {
	weights := map[int64]float64{}
	room := maxPlaces
	for _, t := range terms {
		if room <= 0 {
			break
		}
		const text = "SELECT rowid FROM memory_terms WHERE memory_terms MATCH ? ORDER BY rowid DESC LIMIT ?"
		match := `"` + prefixOf(c.scope) + t.text + `"`
		err := each(c.ctx, c.tx, text, []any{match, room}, func(row *sql.Rows) error {
			var id int64
			err := row.Scan(&id)
			if !c.unwanted[id] {
				weights[id] += t.weight
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		room -= t.memories
	}
	rough := make([]ranked, 0, len(weights))
	for id, weight := range weights {
		rough = append(rough, ranked{id, weight})
	}
	return rough, nil
}

// The usual constants of BM25.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// bm25 ranks some memories by all terms.
func (c *candidates) bm25(ids []int64, terms []term, average float64) ([]ranked, error) {
	list, err := asArray(ids)
	if err != nil {
		return nil, err
	}
	prefix, place := prefixOf(c.scope), make(map[string]int, len(terms))
	for i, t := range terms {
		place[prefix+t.text] = i
	}
	var found []ranked
	counts := make([]float64, len(terms))
	const text = "SELECT t.rowid, t.terms FROM json_each(?) j CROSS JOIN memory_terms t ON t.rowid = j.value"
	err = each(c.ctx, c.tx, text, []any{list}, func(row *sql.Rows) error {
		var r ranked
		var words sql.RawBytes
		if err := row.Scan(&r.id, &words); err != nil {
			return err
		}
		clear(counts)
		length := 0.0
		for word := range strings.SplitSeq(string(words), " ") {
			length++
			if i, ok := place[word]; ok {
				counts[i]++
			}
		}
		for i, n := range counts {
			r.score += terms[i].weight * n * (bm25K + 1) / (n + bm25K*(1-bm25B+bm25B*length/average))
		}
		found = append(found, r)
		return nil
	})
	slices.SortFunc(found, better)
	return found[:min(len(found), c.q.Limit)], err
}

// byMeaning ranks by the cosine; of equal memories the newest is first.
func (c *candidates) byMeaning() (found []ranked, err error) {
	to := unitOf(slices.Clone(c.q.Vector))
	if c.q.Model == "" || to == nil {
		return nil, nil
	}
	of := space{c.scope, c.q.Model, len(to)}
	return found, c.vectors.each(c.ctx, c.tx, of, func(e embedding) {
		r := ranked{e.memory, to.dot(e.unit)}
		if len(found) == c.q.Limit && better(found[len(found)-1], r) < 0 || c.unwanted[e.memory] {
			return
		}
		i, _ := slices.BinarySearchFunc(found, r, better)
		found = slices.Insert(found, i, r)
		found = found[:min(len(found), c.q.Limit)]
	})
}

// memories reads the ranked memories.
func (c *candidates) memories(all []ranked) ([]readmodel.RankedMemory, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(all))
	for i, r := range all {
		ids[i] = r.id
	}
	list, err := asArray(ids)
	if err != nil {
		return nil, err
	}
	found := make([]readmodel.RankedMemory, len(all))
	const text = "SELECT " + memoryColumns + ", j.key FROM json_each(?) j CROSS JOIN memories m ON m.id = j.value"
	return found, each(c.ctx, c.tx, text, []any{c.q.Model, list}, func(row *sql.Rows) error {
		var i int
		m, err := scanMemory(row, c.q.Scope, &i)
		if err == nil {
			found[i] = readmodel.RankedMemory{Memory: m, Score: all[i].score}
		}
		return err
	})
}

// asArray is a list as json_each takes it.
func asArray[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	raw, err := json.Marshal(list)
	return string(raw), err
}
