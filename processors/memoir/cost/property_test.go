package cost

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/rows/costrow"
	"github.com/turntable-streams/turntable/topics"
)

// entry is a record of a topic in the model.
type entry struct {
	key string
	*record
}

// group is a group under the guarantee at least once: a crash returns it to its last cut, but its outputs stay.
type group[R proto.Message] struct {
	input       *[]entry
	apply       func(row R, e entry) (next R, changed bool)
	next, cutAt int
	rows, saved map[string]R
}

func (g *group[R]) step() bool {
	if g.next == len(*g.input) {
		return false
	}
	e := (*g.input)[g.next]
	if row, changed := g.apply(g.rows[e.key], e); changed {
		g.rows[e.key] = row
	}
	g.next++
	return true
}

func (g *group[R]) cut() {
	g.cutAt, g.saved = g.next, map[string]R{}
	for key, row := range g.rows {
		g.saved[key] = row
	}
}

func (g *group[R]) crash() {
	g.next, g.rows = g.cutAt, map[string]R{}
	for key, row := range g.saved {
		g.rows[key] = row
	}
}

// Costs of some sessions, users and tenants are written in any order, some twice, while both groups stop at any record and
// repeat what they did since their last cut. In the end the totals of sessions, users and tenants are the sums over the
// distinct records, although a row remembers fewer of them than there are.
func TestTotalsAreTheSumsOfDistinctCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := &Config{RememberFor: time.Hour, RememberCount: 40}
		now := noon
		var costs, shares []entry
		sessions := &group[*costrow.SessionTotals]{
			input: &costs, rows: map[string]*costrow.SessionTotals{}, saved: map[string]*costrow.SessionTotals{},
			apply: func(row *costrow.SessionTotals, e entry) (*costrow.SessionTotals, bool) {
				out := applySession(row, e.key, e.record, now, catalog, config)
				for _, effect := range out.Effects {
					require.Empty(t, effect.Reason)
					if m, ok := effect.Value.(topics.ModelCost); ok {
						shares = append(shares, entry{m.Scope, newCost(effect.ID, m)})
					}
				}
				return out.Row, out.Changed
			},
		}
		scopes := &group[*costrow.ScopeTotals]{
			input: &shares, rows: map[string]*costrow.ScopeTotals{}, saved: map[string]*costrow.ScopeTotals{},
			apply: func(row *costrow.ScopeTotals, e entry) (*costrow.ScopeTotals, bool) {
				out := applyScope(row, e.key, e.record, now, catalog, config)
				for _, effect := range out.Effects {
					require.Empty(t, effect.Reason)
				}
				return out.Row, out.Changed
			},
		}
		wanted := map[string]Amount{}
		calls := map[string]int64{}
		written := 0
		write := func() {
			m := call(float64(rapid.IntRange(0, 5000).Draw(t, "price"))/1e6, now)
			session := fmt.Sprint("s", rapid.IntRange(0, 2).Draw(t, "session"))
			names := []string{session}
			if user := rapid.IntRange(0, 2).Draw(t, "user"); user > 0 {
				m.UserID, m.TenantID = ptr(fmt.Sprint("u", user)), ptr("acme")
				names = append(names, topics.UserScope(*m.UserID), topics.TenantScope("acme"))
			}
			written++
			costs = append(costs, entry{session, newCost(fmt.Sprint("id-", written), m)})
			amount, err := AmountOf(*m.CostUSD)
			require.NoError(t, err)
			for _, name := range names {
				wanted[name] = wanted[name].Add(amount)
				calls[name]++
			}
		}
		repeat := func() {
			if recent := costs[max(0, len(costs)-6):]; len(recent) > 0 {
				costs = append(costs, rapid.SampledFrom(slices.Clone(recent)).Draw(t, "repeat"))
			}
		}
		for range rapid.IntRange(10, 300).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{
				"write", "write", "repeat", "session", "session", "session", "scope", "scope", "scope", "cut", "crash", "time",
			}).Draw(t, "step") {
			case "write":
				write()
			case "repeat":
				repeat()
			case "session":
				sessions.step()
			case "scope":
				scopes.step()
			case "cut":
				sessions.cut()
				scopes.cut()
			case "crash":
				sessions.crash()
				scopes.crash()
			case "time":
				now = now.Add(time.Second)
			}
			if sessions.next-sessions.cutAt > 10 { // as cuts are made at least after some time
				sessions.cut()
			}
			if scopes.next-scopes.cutAt > 10 {
				scopes.cut()
			}
		}
		for sessions.step() {
		}
		for scopes.step() {
		}
		for name, want := range wanted {
			var got Amount
			var n int64
			if row, ok := sessions.rows[name]; ok {
				got, n = amountFrom(row.Cost), row.LlmCalls
			} else {
				row := scopes.rows[name]
				require.NotNil(t, row, name)
				got, n = amountFrom(row.Cost), row.LlmCalls
				require.Zero(t, got.value().Cmp(amountFrom(row.DayCost).value()))
			}
			require.Equal(t, calls[name], n, name)
			require.Zero(t, got.value().Cmp(want.value()), "%s: got %v, want %v", name, got.Dollars(), want.Dollars())
		}
	})
}
