package turn

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A result that is written to a part by a session whose results are not at hand leaves nothing of itself in memory: what is kept
// is counted.
func TestResultWrittenToAPartIsNotKeptInMemory(t *testing.T) {
	p := midway(t) // t4 is open; t2 and t3 are in parts
	p.respond(the[enriched](t, p.result("t4", "x")), calling("t5", "t6", "t7", "t8"))
	p.result("t5", said)
	b := p.newBinding()
	const sessions, size = 100, 500 << 10
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	for n := range sessions {
		e, ok := p.event("tool-use-result", []byte(toolResult("t6", strings.Repeat("y", size))))
		require.True(t, ok)
		e.source().Session = fmt.Sprint("session", n)
		d, err := b.decide(table{p.row, p.parts}, e, p.now)
		require.NoError(t, err)
		require.Len(t, d.NewParts, 1)
		require.Greater(t, len(d.NewParts[0].Value), size)
	}
	r := b.cache
	grown := heap() - before
	t.Logf("%d KB kept, %d KB counted", grown>>10, (r.size+r.lazySize)>>10)
	require.Less(t, grown, 2*(r.size+r.lazySize)+1<<20)
	runtime.KeepAlive(b)
}
