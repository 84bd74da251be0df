package turn

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The model test: random histories of a session against an oracle that is written from the promises. TURNTABLE_SEEDS is
// how many histories each test tries, or a range such as 300-399; TURNTABLE_SEED is the one to try. A failure prints the
// shortest history found that fails in the same way.

const (
	// modelMoves is how many moves a history has.
	modelMoves = 250
	// maxFailures ends a test whose histories fail again and again.
	maxFailures = 20
)

// crashes say what is lost when the process ends.
type crashes string

const (
	// rowsSurvive is exactly once: every event is handed over once. A restart loses what is in memory.
	rowsSurvive crashes = "rows survive"
	// sameOrder is at least once: rows are lost and their outputs are not, and the records come again as they came.
	sameOrder crashes = "redelivery in the same order"
	// anyOrder is at least once where the order between topics is another one at every redelivery.
	anyOrder crashes = "redelivery in any order"
)

type modelCase struct {
	Seed             uint64
	Small            bool
	Delivery, Reject bool
	Gates            bool
	Channels         bool
	Crashes          crashes
	exact            bool // the outputs that are repeated now have the same bytes, times included
	traced           bool
}

func caseOf(seed uint64, small bool) modelCase {
	return modelCase{
		Seed: seed, Small: small, Delivery: seed%2 == 1, Reject: seed%5 == 4, Gates: !small && seed%4 >= 2,
		Crashes: []crashes{rowsSurvive, sameOrder, anyOrder}[seed/2%3],
	}
}

func (c modelCase) String() string {
	return fmt.Sprintf("seed %d: small row %v, delivery %v, reject %v, gates %v, channels %v, crashes: %s", c.Seed, c.Small, c.Delivery, c.Reject, c.Gates,
		c.Channels, c.Crashes)
}

func TestTurnKeepsItsPromises(t *testing.T) {
	t.Parallel()
	tryHistories(t, false, 40)
}

func TestTurnKeepsItsPromisesAtTheRowLimit(t *testing.T) {
	t.Parallel()
	tryHistories(t, true, 16)
}

func tryHistories(t *testing.T, small bool, count uint64, change ...func(*modelCase)) {
	t.Helper()
	from, to := seeds(t, count)
	var failed []string
	first := ""
	for seed := from; seed < to; seed++ {
		c, moves := caseOf(seed, small), make([]int, modelMoves)
		for i := range moves {
			moves[i] = i
		}
		for _, f := range change {
			f(&c)
		}
		_, failure := c.run(moves)
		if failure == "" {
			continue
		}
		if len(failed) == 0 {
			fewer, trace, why := c.shrink(moves)
			first = fmt.Sprintf("%s, moves %v\n%s\n%s", c, fewer, strings.Join(trace, "\n"), why)
		}
		failed = append(failed, fmt.Sprintf("%s\n%.600s", c, failure))
		if len(failed) == maxFailures {
			break
		}
	}
	if len(failed) > 0 {
		t.Errorf("%d of the histories %d to %d break a promise. Run one with TURNTABLE_SEED=n go test -run '^%s$' ./processors/turn\n"+
			"%s\nThe first one, without the moves that it fails without: %s",
			len(failed), from, to-1, t.Name(), strings.Join(failed, "\n"), first)
	}
}

// seeds are the histories to try: [from, to).
func seeds(t *testing.T, count uint64) (from, to uint64) {
	t.Helper()
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if one := os.Getenv("TURNTABLE_SEED"); one != "" {
		return number(one), number(one) + 1
	}
	text := os.Getenv("TURNTABLE_SEEDS")
	if first, last, ok := strings.Cut(text, "-"); ok {
		return number(first), number(last) + 1
	}
	if text != "" {
		return 0, number(text)
	}
	return 0, count
}

// run tries a history and says what is wrong with it.
func (c modelCase) run(moves []int) (trace []string, failure string) {
	v := &verdict{}
	var m *model
	defer func() {
		if m != nil {
			trace = m.trace
		}
		switch thrown := recover(); thrown.(type) {
		case nil:
		case failedVerdict:
			failure = v.text
		default:
			failure = fmt.Sprintf("panic: %v\n%s", thrown, debug.Stack())
		}
	}()
	m = newModel(v, c)
	for _, n := range moves {
		m.move(n)
	}
	m.settle()
	return nil, ""
}

// settle hands over what is left, in any order, and lets time pass until nothing waits for it.
func (m *model) settle() {
	m.tb.Helper()
	m.op = modelMoves
	r := rand.New(rand.NewPCG(m.Seed, modelMoves))
	for pending := m.pending(); len(pending) > 0; pending = m.pending() {
		m.deliver(pending[r.IntN(len(pending))])
	}
	for n := 0; len(m.unfinished) > 0; n++ {
		if n == 100 {
			m.failf("a turn hangs")
		}
		m.now = time.UnixMilli(max(m.state().DeadlineMs, m.now.UnixMilli())).UTC()
		m.fire(false)
	}
	for key := range m.known.entries {
		if turn, ok := strings.CutPrefix(key, "accepted/"); ok && !m.known.has("emitted/"+turn+"/0/output/0", 0) {
			m.failf("the message of turn %s has no output", turn)
		}
	}
	for id := range m.published {
		turn, step := turnOf(id)
		if (strings.Contains(id, "/tool-use/") || strings.Contains(id, "/gate-request/")) && !m.raced[turn] && m.published[fmt.Sprintf("%s/%d/all-complete/0", turn, step)].raw == "" {
			m.failf("the call %s has no result", id)
		}
	}
}

// shrink leaves out moves as long as the history still fails.
func (c modelCase) shrink(moves []int) (fewer []int, trace []string, failure string) {
	fewer = moves
	_, failure = c.run(fewer)
	kind := kindOf(failure)
	for runs, chunk := 0, len(fewer)/2; chunk > 0 && runs < 500; {
		smaller := false
		for at := 0; at < len(fewer) && runs < 500; {
			tried := slices.Delete(slices.Clone(fewer), at, min(at+chunk, len(fewer)))
			runs++
			if _, f := c.run(tried); f != "" && kindOf(f) == kind {
				fewer, smaller = tried, true
			} else {
				at += chunk
			}
		}
		if !smaller || chunk > 1 {
			chunk /= 2
		}
	}
	c.traced = true
	trace, failure = c.run(fewer)
	return fewer, trace, failure
}

var numbered = regexp.MustCompile("[0-9a-f]*[0-9][0-9a-f]*")

// kindOf is what failures of the same kind have in common.
func kindOf(failure string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(failure), "\n")
	return numbered.ReplaceAllString(first, "#")
}

// verdict is a test that a history may fail without failing the test.
type verdict struct{ text string }

type failedVerdict struct{}

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) { v.text += fmt.Sprintf(format, args...) + "\n" }

func (v *verdict) FailNow() { panic(failedVerdict{}) }
