package wiretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// T is the part of testing.TB that Attack uses.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Options configures an Attack.
type Options struct {
	// Partitions, if not 0, is the partition count with which missing topics are created before the start.
	Partitions int32
	// Seed determines the scenario: the same seed gives the same scenario.
	Seed uint64
	// Sessions is the number of sessions (default: three of each theme), Turns the number of messages in each (default
	// 4, at most 12).
	Sessions, Turns int
	// Parallel is the number of sessions that are played concurrently. Default 16.
	Parallel int
	// Themes are the kinds of sessions. Default: Themes().
	Themes []Theme
	// WaitLimit, if not 0, ends the attack with an error when no record was read for this long. See the option WaitLimit.
	WaitLimit time.Duration
	// Oracle holds further options of the oracle. The ledger is set by Attack.
	Oracle []OracleOption
}

// Attack plays a seeded scenario against the running pipeline of an agent. It reports violations and errors to t and
// returns the oracle's report. It blocks until every message has its output, or until ctx ends: set a deadline.
func Attack(ctx context.Context, t T, bootstrap []string, agent string, opts Options) Report {
	t.Helper()
	r, err := attack(ctx, bootstrap, agent, opts)
	if err != nil {
		t.Errorf("attack with seed %d: %v", opts.Seed, err)
	}
	if !r.Kept() {
		t.Errorf("attack with seed %d: %s", opts.Seed, r)
	} else {
		t.Logf("attack with seed %d: %s", opts.Seed, r)
	}
	return r
}

func attack(ctx context.Context, bootstrap []string, agent string, opts Options) (Report, error) {
	if opts.Partitions > 0 {
		if err := CreateTopics(ctx, bootstrap, agent, opts.Partitions); err != nil {
			return Report{}, err
		}
	}
	ledger := NewLedger()
	oracle, err := NewOracle(ctx, bootstrap, agent, append(opts.Oracle, JudgeBy(ledger), WaitLimit(opts.WaitLimit))...)
	if err != nil {
		return Report{}, err
	}
	defer oracle.Close()
	driver, err := NewDriver(ctx, bootstrap, agent, WithLedger(ledger), WithBacklog(24))
	if err != nil {
		return Report{}, err
	}
	defer driver.Close() //nolint:errcheck // if a worker failed, a turn hangs and the oracle reports it
	if err := driver.Start(ctx); err != nil {
		return Report{}, err
	}
	if err := playSessions(ctx, driver, oracle, opts); err != nil {
		r, _ := oracle.Report(context.WithoutCancel(ctx))
		return r, err
	}
	if err := driver.Release(ctx); err != nil {
		return Report{}, err
	}
	return oracle.Settle(ctx)
}

// playSessions plays the sessions, opts.Parallel of them concurrently.
func playSessions(ctx context.Context, d *Driver, o *Oracle, opts Options) error {
	themes := opts.Themes
	if len(themes) == 0 {
		themes = Themes()
	}
	sessions, turns, parallel := opts.Sessions, opts.Turns, opts.Parallel
	if sessions <= 0 {
		sessions = 3 * len(themes)
	}
	if turns <= 0 {
		turns = 4
	}
	if parallel <= 0 {
		parallel = 16
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range sessions {
		theme := themes[i%len(themes)]
		s := &scene{
			Driver: d, oracle: o, theme: theme, name: fmt.Sprintf("%s-%d", theme, i), turns: min(turns, 12),
			random: rand.New(rand.NewPCG(opts.Seed, uint64(i))),
		}
		group.Go(func() error {
			if err := s.play(ctx); err != nil {
				return fmt.Errorf("wiretest: session %s: %w", s.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
