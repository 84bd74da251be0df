package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// longTurn is a turn of many steps, whose tools say a lot. It returns how long the conversation is at its end, in bytes.
func (p *play) longTurn(steps, tools, size int) int {
	p.tb.Helper()
	asked := p.ask("Which berths are free?")
	for step := range steps {
		var ids []string
		for n := range tools {
			ids = append(ids, fmt.Sprintf("tu-%d-%d", step, n))
		}
		p.respond(asked, calling(ids...))
		var last effects
		for _, id := range ids {
			last = p.send("tool-use-result", toolResult(id, strings.Repeat("N4 ", size/3)))
		}
		asked = the[enriched](p.tb, last)
	}
	p.respond(asked, saying("All of them."))
	return len(p.state().History)
}

// A turn writes what it adds to the conversation a few times, however many steps it has: not all of it with every event.
func TestLongTurnWritesEachByteAFewTimes(t *testing.T) {
	for _, shape := range []struct{ steps, tools, size int }{{20, 3, 3000}, {40, 1, 3000}, {1, 40, 3000}, {40, 1, 100}} {
		t.Run(fmt.Sprintf("%d steps with %d tools of %d bytes", shape.steps, shape.tools, shape.size), func(t *testing.T) {
			p := newPlay(t)
			length := p.longTurn(shape.steps, shape.tools, shape.size)
			t.Logf("wrote %.1f times the conversation of %d KB", float64(p.wrote)/float64(length), length>>10)
			// A row has some memories of its own, and calls.
			rows := shape.steps*(shape.tools+2) + 2
			require.Less(t, p.wrote, 6*length+rows*4<<10)
		})
	}
}
