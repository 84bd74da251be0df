package entrance

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/clock"
)

func TestBuffersOfOneSizeAreReused(t *testing.T) {
	for size, class := range map[int]int{
		0: -1, 1: -1, firstBuffer - 1: -1, firstBuffer: 0, firstBuffer + 1: -1, 2 * firstBuffer: 1, 3 * firstBuffer: -1,
		firstBuffer << 11: 11, firstBuffer << 12: -1,
	} {
		require.Equal(t, class, classOf(size), size)
		reuse(make([]byte, size/2, size))
		b := bufferOf(size)
		require.Empty(t, b)
		require.Equal(t, size, cap(b))
	}
}

// A deep body is refused anyway: receiving the rest of it is garbage that slows every other request.
func TestDeepBodiesAreNotReceivedToTheirEnd(t *testing.T) {
	const length = 200_000
	flat := `{"a":"` + strings.Repeat("[", length-8) + `"}`
	for name, c := range map[string]struct {
		body  string
		whole bool
	}{
		"arrays":                   {strings.Repeat("[", length), false},
		"objects":                  {strings.Repeat(`{"a":`, length/5), false},
		"brackets in a string":     {flat, true},
		"as deep as is allowed":    {strings.Repeat("[", codec.MaxDepth) + strings.Repeat(" ", length) + strings.Repeat("]", codec.MaxDepth), true},
		"one deeper":               {strings.Repeat("[", codec.MaxDepth+1) + strings.Repeat(" ", length), false},
		"deep after the value":     {"{}" + strings.Repeat("[", length), true},
		"not JSON, for example":    {"payload=" + strings.Repeat("[", length), true},
		"deep in the last bracket": {strings.Repeat("[]", length/2) + strings.Repeat("[", length), true},
	} {
		t.Run(name, func(t *testing.T) {
			rest := strings.NewReader(c.body)
			r := httptest.NewRequest("POST", "/", rest)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer good")
			w := httptest.NewRecorder()
			v, refusal := authenticated(t, clock.NewFake(noon)).Open(w, r)
			defer v.Close()
			require.Nil(t, refusal)
			body, refusal := v.ReadBody(w)
			require.Nil(t, refusal)
			require.Equal(t, c.whole, len(body) == len(c.body))
			require.Equal(t, !c.whole, codec.Deeper(body, codec.MaxDepth), "what was received decides it")
			if !c.whole {
				require.LessOrEqual(t, len(body), 3*firstBuffer)
			}
		})
	}
}
