package console

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

func TestOrderedListIsThatOfASort(t *testing.T) {
	list := ordered[int]{compare: cmp.Compare[int]}
	want := map[int]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := random.IntN(5000)
		if random.IntN(3) == 0 {
			list.remove(v)
			delete(want, v)
		} else {
			list.add(v)
			want[v] = true
		}
	}
	all := func(from *int) (got []int) {
		list.from(from, func(v int) bool { got = append(got, v); return true })
		return got
	}
	var sorted []int
	for v := range want {
		sorted = append(sorted, v)
	}
	slices.Sort(sorted)
	require.Equal(t, sorted, all(nil))
	require.Equal(t, len(sorted), list.n)
	middle := 2500
	at, _ := slices.BinarySearch(sorted, middle)
	require.Equal(t, sorted[at:], all(&middle))
	last := -1
	list.back(func(v int) bool { last = v; return false })
	require.Equal(t, sorted[len(sorted)-1], last)
	for _, v := range sorted {
		list.remove(v)
	}
	require.Empty(t, list.chunks)
}

// Every session is on exactly one page, and each page says which part of the list it is.
func TestListIsPagedWithoutGaps(t *testing.T) {
	c := stored(t, 3412)
	get := func(p string) string {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+p, nil))
		require.Equal(t, http.StatusOK, w.Code, p)
		return w.Body.String()
	}
	link, row := regexp.MustCompile(`id="next" rel="next" href="([^"]+)"`), regexp.MustCompile(`user-\d{7}:session</bdi>`)
	seen := map[string]bool{}
	page, pages := get("/console/sessions"), 1
	require.Contains(t, page, "first 100 of 3,412 sessions.")
	for {
		for _, s := range row.FindAllString(page, -1) {
			require.False(t, seen[s], s)
			seen[s] = true
		}
		next := link.FindStringSubmatch(page)
		if next == nil {
			break
		}
		page = get(strings.ReplaceAll(strings.ReplaceAll(next[1], "&amp;", "&"), "&#43;", "+"))
		pages++
	}
	require.Contains(t, page, "3,401 to 3,412 of 3,412 sessions.")
	require.Len(t, seen, 3412)
	require.Equal(t, 35, pages)
	require.Contains(t, get("/console/sessions?state=open"), "35 sessions.")
	page = get("/console/sessions?prefix=user-00033")
	require.Contains(t, page, "1 to 100, the last of them.")
	page = get("/console/sessions?prefix=user-0003")
	page = get(strings.ReplaceAll(link.FindStringSubmatch(page)[1], "&amp;", "&"))
	require.Contains(t, page, "101 to 200, and there are more.")
	require.Contains(t, get("/console/"), "are still being read", "the console says that it has read nothing")
}

func TestIdleSessionsAreForgottenOverTheLimit(t *testing.T) {
	c := Config{SessionLimit: 10}
	require.NoError(t, c.complete())
	x := newIndex(&c)
	for i := range 30 {
		v := turn.View{SessionID: string(rune('a' + i)), Messages: 1, ChangedAt: topics.Timestamp(time.UnixMilli(int64(i)))}
		if i == 0 {
			v.Turn = &turn.TurnView{}
		}
		x.putTurn(x.at(v.SessionID, turnRow, 0, int64(i)), &v)
	}
	require.True(t, x.forgotten)
	require.Contains(t, x.sessions, "a", "an open session is kept")
	require.Len(t, x.sessions, 10)
	require.Equal(t, x.byID.n, len(x.sessions))
	require.Equal(t, 1, x.waiting.n)
}

func TestDiffKeepsAllLines(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"a\nb\nc\n", "a\nx\nc\nd\n", " a-b+x c+d"},
		{"", "a\n", "+a"},
		{"a\n", "", "-a"},
		{"a", "a", " a"},
	} {
		got := ""
		for _, l := range diffOf(c.before, c.after, "").Lines {
			got += l.Sign + l.Text
		}
		require.Equal(t, c.want, got)
	}
	long := strings.Repeat("x\ny\n", 2000)
	require.True(t, diffOf("a\n"+long+"b\n", "c\n"+strings.Repeat("y\nx\n", 2000)+"d\n", "").Whole)
}
