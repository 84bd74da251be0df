package turn

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows"
)

// BenchmarkTransition measures records a second through the transition alone, rows and records decoded and encoded as
// the binding does it: one turn with two tools is a message, two think-responses and two results.
func BenchmarkTransition(b *testing.B) {
	for _, size := range []int{0, 10 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("history=%dKB", size>>10), func(b *testing.B) {
			p := newPlay(b)
			bind := p.bind
			bind.rules = p.rules
			step := func(topic, value string) enriched {
				e, ok := p.event(topic, []byte(value))
				require.True(b, ok)
				d, err := bind.decide(p.table(), e, p.now)
				if err != nil {
					b.Fatal(err)
				}
				for _, n := range d.NewParts {
					p.parts[n.Number] = n.Value
				}
				for _, n := range d.UnusedParts {
					delete(p.parts, n)
				}
				p.row = d.row
				if !d.Changed {
					b.Fatal("nothing happened")
				}
				return enriched{}
			}
			history := ""
			if size > 0 {
				one := `{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}`
				history = one + strings.Repeat(","+one, size/len(one)-1)
			}
			asked := func(text string) string {
				return `{"total_session_cost":0.5,"previous_messages":[` + history + `],"last_input_message":` +
					message(text) + `,`
			}
			step("message-input", message("zero"))
			step("think-request-response", asked("zero")+saying("done")+`}`)
			first, parts := p.row, maps.Clone(p.parts)
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				if n%100 == 0 {
					p.row, p.parts = first, maps.Clone(parts)
				}
				text := fmt.Sprint("question ", n)
				step("message-input", message(text))
				one, two := fmt.Sprint("a", n), fmt.Sprint("b", n)
				step("think-request-response", asked(text)+calling(one, two)+`}`)
				step("tool-use-result", toolResult(one, "x"))
				step("tool-use-result", toolResult(two, "y"))
				step("think-request-response", `{"previous_messages":[`+history+`],"timestamp":"`+text+`",`+saying("done")+`}`)
			}
			b.ReportMetric(float64(5*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkDeadline reads the deadline of a row with a long history.
func BenchmarkDeadline(b *testing.B) {
	p := newPlay(b)
	p.respond(p.ask("one"), saying(strings.Repeat("x", 100<<10)))
	p.ask("two")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := rows.Deadline(p.row); !ok {
			b.Fatal("no deadline")
		}
	}
}
