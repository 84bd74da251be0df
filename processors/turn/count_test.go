package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestMessageCountEqualsTheNumberOfDecodedMessages(t *testing.T) {
	for array, want := range map[string]uint32{
		``: 0, `[]`: 0, `[ ]`: 0, `[null]`: 0, `[ null , null ]`: 0, `[{}]`: 1, `[1,"null",null,true]`: 3,
		`[{"a":[1,2,{"b":","}]},{"c":"]\"],["}]`: 2, `["\\",["\\\"",","]]`: 2, " [\n{} ,\t{} ]": 2, `[[null],null]`: 1,
	} {
		require.Equal(t, want, messages(topics.Raw(array)), array)
	}
}

func FuzzMessagesAreCountedAsTheyAreRead(f *testing.F) {
	f.Add(`[1,"\\",{"a":[null]},null]`)
	f.Fuzz(func(t *testing.T, array string) {
		elements, err := topics.Elements(topics.Raw(array))
		count := messages(topics.Raw(array)) // never panics
		if err != nil || array == "" {
			return
		}
		want := uint32(0)
		for _, e := range elements {
			if e != nil {
				want++
			}
		}
		require.Equal(t, want, count)
	})
}
