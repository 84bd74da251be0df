package crewhttp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

const (
	// rowWait is how long a request waits for rows that are behind what clients have seen.
	rowWait = 5 * time.Second
	// maxAnnounced is how many rows are expected at once because of the door's own answers.
	maxAnnounced = 2000
)

// expect remembers that a row comes into being.
func (x *Index) expect(subject, crew string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rowSeq(subject) < 0 {
		x.announced.Add(subject, crew, x.config.Clock.Now())
	}
}

// rowSeq returns the seq of the last event that the row of a subject knows, -1 if there is no row. The caller holds the lock.
func (x *Index) rowSeq(subject string) int64 {
	id := mailbox.ID(subject)
	agent, crew, repository := x.agents[id], x.crews[id], x.repositories[id]
	switch {
	case strings.HasPrefix(subject, mailbox.OfAgent) && agent != nil:
		return agent.seq
	case ofCrews(subject) && crew != nil:
		return crew.GetMailbox().GetSeq()
	case ofRepositories(subject) && repository != nil:
		return repository.GetMailbox().GetSeq()
	}
	return -1
}

// look blocks until found returns true, or until the index has the rows that an answer of "unknown" depends on: all that are
// committed, and those of the subjects that of accepts as far as clients have seen their events or were promised them. At least
// once, a row is written up to seconds after its events. It waits for a few seconds at most, and only for crews that the caller
// may use: the time of an answer must not tell what exists in others. The error wraps ErrNotReady. found is called without the lock,
// and once more after the last row that it depends on.
func (x *Index) look(ctx context.Context, c auth.Caller, of func(subject string) bool, found func() bool) error {
	if found() {
		return nil
	}
	return x.lookNewest(ctx, c, of, found)
}

// lookNewest is look for what may have changed: what it finds is as new as what was committed when it was called.
func (x *Index) lookNewest(ctx context.Context, c auth.Caller, of func(subject string) bool, found func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, rowWait)
	defer cancel()
	if err := x.catchUp(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	wanted := x.behind(c, of)
	x.mu.Unlock()
	for !found() && len(wanted) > 0 {
		if err := x.awaitRow(ctx, wanted); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// wantedRow is a row that is behind: the seq that it has, -1 if there is no row, and the one that it will have at least, 0 for any.
type wantedRow struct{ has, needs int64 }

// awaitRow blocks until one of the rows has changed since it was noted, or ctx ends, and leaves out of wanted what is not behind any
// more. It returns ErrNotReady if the index ends.
func (x *Index) awaitRow(ctx context.Context, wanted map[string]wantedRow) error {
	moved := make(chan struct{}, 1)
	x.mu.Lock()
	forget := x.announced.Await(moved, slices.Collect(maps.Keys(wanted))...)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		forget()
	}()
	for {
		changed := false
		x.mu.Lock()
		for subject, w := range wanted {
			_, announced := x.announced.Of(subject, x.config.Clock.Now())
			switch has := x.rowSeq(subject); {
			case has >= w.needs || w.needs == 0 && !announced:
				delete(wanted, subject)
				changed = true
			case has != w.has:
				wanted[subject] = wantedRow{has, w.needs}
				changed = true
			}
		}
		if changed {
			x.mu.Unlock()
			return nil
		}
		x.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil
		case <-x.follows.Ended:
			return ErrNotReady
		}
	}
}

// behind returns the subjects whose rows are older than what clients have seen lately. The caller holds the lock.
func (x *Index) behind(c auth.Caller, of func(subject string) bool) map[string]wantedRow {
	wanted, now := map[string]wantedRow{}, x.config.Clock.Now()
	for at := x.streams.used.Back(); at != nil; at = at.Prev() {
		s := at.Value.(*stream)
		if now.Sub(s.applied) >= rowWait {
			break
		}
		has := x.rowSeq(s.subject)
		if !of(s.subject) || has < 0 && (x.full || s.last.Type == spawnErrorEvent) { // it was left out, or there is none
			continue
		}
		for _, e := range slices.Backward(s.events) { // those of a repository are of several crews
			if e.Seq <= has {
				break
			}
			if mayUse(c, x.crewOf(e)) {
				wanted[s.subject] = wantedRow{has, e.Seq}
				break
			}
			if !ofRepositories(s.subject) {
				break
			}
		}
	}
	for subject, crew := range x.announced.All(now) {
		if _, known := wanted[subject]; !known && !x.full && of(subject) && mayUse(c, crew) {
			wanted[subject] = wantedRow{has: -1} // whatever the row is
		}
	}
	return wanted
}

// only accepts one subject.
func only(subject string) func(string) bool { return func(s string) bool { return s == subject } }

// ofCrews accepts the subjects of crews, and ofRepositories those of repositories.
func ofCrews(subject string) bool        { return strings.HasPrefix(subject, mailbox.OfCrew) }
func ofRepositories(subject string) bool { return strings.HasPrefix(subject, mailbox.OfRepository) }
