package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// TidyGrace is how long files must have been of no use before Tidy removes
// them: a fork's are there before its log is.
const TidyGrace = 15 * time.Minute

// collectFor is for how long one Tidy begins to have files collected.
const collectFor = 5 * time.Minute

// Tidied is what Tidy has done.
type Tidied struct {
	Trees   int // of which files were removed
	Waiting int // of which files are removed when they have been of no use for TidyGrace, or bytes are still left
	Errors  int // trees that could not be looked at, removed or rid of replaced files; each is logged
}

// tree is a session tree of which a provider has files.
type tree struct {
	provider workspace.Provider
	root     string
}

func (t tree) key() string { return t.provider.ID() + " " + t.root }

// Tidy removes files that are left in workspaces: of trees that have been
// erased, or closed, by another node or half, and of forks that never came to
// be. Then it has providers remove replaced and deleted files of the other trees, for about
// five minutes: the next one continues with those that are left. Each node
// has to, since only it may reach some of its files. One at a time.
//
// Errors: those of listing what there is, after the providers that can; ctx's.
func (a *Admin) Tidy(ctx context.Context) (Tidied, error) {
	select {
	case a.tidying <- struct{}{}:
		defer func() { <-a.tidying }()
	case <-ctx.Done():
		return Tidied{}, context.Cause(ctx)
	}
	var done Tidied
	var unlisted []error
	var inUse []tree
	now, useless := a.requests.Clock.Now(), map[string]time.Time{}
	for _, kind := range a.files.Providers.Kinds() {
		p := a.files.Providers[kind]
		roots, err := p.Roots(ctx)
		if err != nil { // the others are tidied
			unlisted = append(unlisted, fmt.Errorf("agentloop: tidy: %s: %w", kind, err))
			for key, since := range a.useless {
				if strings.HasPrefix(key, kind+" ") {
					useless[key] = since
				}
			}
			continue
		}
		for _, root := range roots {
			key := kind + " " + root
			used, err := a.usesFiles(ctx, p, root)
			since, known := a.useless[key]
			switch {
			case ctx.Err() != nil:
				return done, context.Cause(ctx)
			case err == nil && used:
				inUse = append(inUse, tree{p, root})
				continue
			case err == nil && !known:
				since = now
			}
			if err == nil && now.Sub(since) >= TidyGrace {
				var left string
				if _, left, err = a.files.RemoveFrom(ctx, p, root); err == nil && left == "" {
					done.Trees++
					continue
				}
			}
			if err != nil {
				done.Errors++
				a.files.Logger.Warn("left files were not removed", eventlog.LogSession, root, "provider", kind, "error", err)
			} else {
				done.Waiting++
			}
			if !since.IsZero() {
				useless[key] = since
			}
		}
	}
	a.useless = useless
	done.Errors += a.collect(ctx, inUse)
	if ctx.Err() != nil {
		return done, context.Cause(ctx)
	}
	return done, errors.Join(unlisted...)
}

// collect has replaced files removed of one tree after the other, from the one on after that
// where the last call ended. It returns how many trees failed.
func (a *Admin) collect(ctx context.Context, trees []tree) (failed int) {
	slices.SortFunc(trees, func(x, y tree) int { return strings.Compare(x.key(), y.key()) })
	next := max(slices.IndexFunc(trees, func(t tree) bool { return t.key() > a.collected }), 0)
	began := a.requests.Clock.Now()
	for _, t := range slices.Concat(trees[next:], trees[:next]) {
		if ctx.Err() != nil || a.requests.Clock.Now().Sub(began) >= collectFor {
			break
		}
		a.collected = t.key()
		if err := a.files.Collect(ctx, t.provider, t.root); err != nil && ctx.Err() == nil {
			failed++
			a.files.Logger.Warn("replaced files were not removed", eventlog.LogSession, t.root, "provider", t.provider.ID(), "error", err)
		}
	}
	return failed
}

// usesFiles reports whether a tree's files are of use.
func (a *Admin) usesFiles(ctx context.Context, p workspace.Provider, root string) (bool, error) {
	t, err := a.requests.States.Head(ctx, root)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(t.Sessions(), func(s *projector.Session) bool {
		return holdsFiles(s) && s.Workspace.ProviderID == p.ID()
	}), nil
}
