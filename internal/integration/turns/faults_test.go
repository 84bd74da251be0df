package turns

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/turntable-streams/turntable/internal/testing/kafkatest"
	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
)

// fault is a row of the fault matrix.
type fault struct {
	name string
	// play does it, while turns run.
	play func(*field)
	// only names the guarantee under which there is such a thing; empty: both.
	only processors.Guarantee
	// alone: it measures a time, so that nothing may run beside it.
	alone bool
	// anyEnd: turns may end in an error output.
	anyEnd bool
	// long: too slow for the short run.
	long bool
	// limit is how long it may take; 0: 10 minutes.
	limit time.Duration
	// cluster is what the fault is done to, where it is done to the brokers themselves.
	cluster func(*testing.T) *kafkatest.Cluster
}

// field is the environment of a fault under one guarantee: turns with three tools that run all the time, and the processes
// under test.
type field struct {
	*testing.T
	config
	ctx     context.Context
	load    *wiretest.Load
	ledger  *wiretest.Ledger // nil where turns may have any end
	all     []*instance
	cluster *kafkatest.Cluster // where the fault is done to the brokers
	dirs    map[string]string  // of instances

	kills   int
	figures []string // for the table
}

// partitions of the inputs.
const faultPartitions = 3

// session timeout of the processes: the shortest that brokers of tests allow is a second.
const sessionTimeout = 3 * time.Second

func TestFaults(t *testing.T) {
	var rows []fault
	for _, f := range faults() {
		if !f.long || !short {
			rows = append(rows, f)
		}
	}
	playAll(t, rows)
}

// playAll plays faults under each guarantee and writes the table of the results.
func playAll(t *testing.T, rows []fault) {
	results := &table{cells: map[string]string{}}
	t.Cleanup(func() { results.write(t, rows) })
	for _, f := range rows {
		under := []processors.Guarantee{f.only}
		if f.only == "" {
			under = testbroker.GuaranteesOf(f.name, guarantees...)
		}
		for _, guarantee := range under {
			t.Run(f.name+"/"+string(guarantee), func(t *testing.T) {
				if !f.alone {
					t.Parallel()
				}
				results.set(f.name, guarantee, "**not kept**")
				results.set(f.name, guarantee, f.run(t, guarantee))
			})
		}
	}
}

// run plays a fault and judges the records on the topics at the end.
func (x fault) run(t *testing.T, guarantee processors.Guarantee) (result string) {
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(x.limit, 10*time.Minute))
	defer cancel()
	f := &field{
		T: t, ctx: ctx, dirs: map[string]string{},
		config: config{
			agent: testbroker.Agent(), guarantee: guarantee, child: settings{SessionMS: sessionTimeout.Milliseconds()},
		},
	}
	if x.cluster != nil {
		f.cluster = x.cluster(t)
		f.brokers = f.cluster.Bootstrap()
	} else {
		f.brokers = testbroker.Start(t)
	}
	f.prepare(!x.anyEnd)
	x.play(f)
	return f.settle()
}

// prepare creates the topics and starts the turns.
func (f *field) prepare(judged bool) {
	require.NoError(f, wiretest.CreateTopics(f.ctx, f.brokers, f.agent, faultPartitions))
	f.visible(wiretest.NamesOf(f.agent))
	if judged {
		f.ledger = wiretest.NewLedger()
	}
}

// visible waits until the created topics are visible on the brokers: a process that starts earlier would create the missing
// ones itself.
func (f *field) visible(names wiretest.Names) {
	f.Helper()
	f.withTopics(func(admin *kadm.Client) {
		require.Eventually(f, func() bool {
			have, err := admin.ListTopics(f.ctx)
			if err != nil {
				return false
			}
			known := have.Names()
			return !slices.ContainsFunc(names.All(), func(topic string) bool {
				return topic != names.Loop && !slices.Contains(known, topic)
			})
		}, wait, poll)
	})
}

// ask starts the turns.
func (f *field) ask() {
	f.Helper()
	load, err := wiretest.StartLoad(f.ctx, f.brokers, f.agent, wiretest.LoadOptions{
		Tools: 3, Concurrency: users, PerSession: 3, Ledger: f.ledger,
	})
	require.NoError(f, err)
	f.load = load
	f.Cleanup(func() { require.NoError(f, load.Close()) })
}

// settle waits for the open turns, stops everything and judges. It returns the figures for the table.
func (f *field) settle() string {
	f.Helper()
	f.load.Stop()
	require.NoError(f, f.load.Wait(f.ctx))
	for _, i := range f.all {
		if !i.Gone() {
			require.NoError(f, i.Stop(), i.name)
		}
	}
	report, err := f.judge(time.Minute)
	require.NoError(f, err, report.String())
	require.True(f, report.Kept(), report.String())
	for name, dir := range f.dirs {
		f.storeFollowsLog(name, dir)
	}
	p := f.load.Progress()
	figures := []string{fmt.Sprintf("%d turns", p.Answered+p.Failed)}
	if f.kills > 0 {
		figures = append(figures, fmt.Sprintf("%d kills", f.kills))
	}
	if report.Counts.Repeats > 0 {
		figures = append(figures, fmt.Sprintf("%d repeats", report.Counts.Repeats))
	}
	figures = append(figures, fmt.Sprintf("longest wait %s", round(p.Max)))
	result := "kept: " + strings.Join(append(figures, f.figures...), ", ")
	f.Log(result)
	return result
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// judge reads all topics and judges their records.
func (f *field) judge(limit time.Duration) (wiretest.Report, error) {
	f.Helper()
	options := []wiretest.OracleOption{wiretest.WaitLimit(limit)}
	if f.ledger != nil {
		options = append(options, wiretest.JudgeBy(f.ledger))
	}
	oracle, err := wiretest.NewOracle(f.ctx, f.brokers, f.agent, judging(f.guarantee, options...)...)
	require.NoError(f, err)
	defer oracle.Close()
	return oracle.Settle(f.ctx)
}

// launch starts an instance without waiting for it. change, if not nil, changes its configuration.
func (f *field) launch(name string, change ...func(*config)) *instance {
	f.Helper()
	c := f.config
	c.instance = name
	if c.dir = f.dirs[name]; c.dir == "" {
		c.dir = f.TempDir()
		f.dirs[name] = c.dir
	}
	for _, x := range change {
		x(&c)
	}
	i := spawn(f.T, c)
	f.all = append(f.all, i)
	return i
}

// start starts an instance and waits until it runs.
func (f *field) start(name string, change ...func(*config)) *instance {
	f.Helper()
	i := f.launch(name, change...)
	f.runs(i)
	return i
}

func (f *field) runs(i *instance) {
	f.Helper()
	require.NoError(f, i.Await(f.ctx), i.name)
}

// answered waits until this many more turns have ended.
func (f *field) answered(more int) {
	f.Helper()
	start := f.load.Progress()
	if !assert.Eventually(f, func() bool {
		p := f.load.Progress()
		return p.Answered+p.Failed >= start.Answered+start.Failed+more
	}, wait, 5*time.Millisecond) {
		f.Fatalf("no turns end: %+v\n%s", f.load.Progress(), kill.Stuck(f.ctx, f.brokers, f.agent))
	}
}

// killed kills an instance with SIGKILL.
func (f *field) killed(i *instance) {
	f.Helper()
	f.kills++
	i.kill(f.T)
}

func (f *field) figure(format string, args ...any) {
	f.figures = append(f.figures, fmt.Sprintf(format, args...))
}

// tableVariable is the environment variable with the file to which the table of faults and results is written.
const tableVariable = "TURNTABLE_FAULTS_TABLE"

// table maps faults to their results.
type table struct {
	mu    sync.Mutex
	cells map[string]string
}

func cell(name string, g processors.Guarantee) string { return name + "\x00" + string(g) }

func (r *table) set(name string, g processors.Guarantee, result string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cells[cell(name, g)] = result
}

// write appends the rows as Markdown to the file in TURNTABLE_FAULTS_TABLE. Several tests contribute to the table.
func (r *table) write(t *testing.T, rows []fault) {
	path := os.Getenv(tableVariable)
	if path == "" {
		return
	}
	var b strings.Builder
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer file.Close()
	if at, err := file.Stat(); err == nil && at.Size() == 0 {
		b.WriteString("| fault | at least once | exactly once |\n|---|---|---|\n")
	}
	for _, f := range rows {
		fmt.Fprintf(&b, "| %s |", f.name)
		for _, g := range guarantees {
			result := r.cells[cell(f.name, g)]
			switch {
			case f.only != "" && f.only != g:
				result = "-"
			case result == "":
				result = "not run"
			}
			fmt.Fprintf(&b, " %s |", result)
		}
		b.WriteString("\n")
	}
	_, err = file.WriteString(b.String())
	require.NoError(t, err)
}
