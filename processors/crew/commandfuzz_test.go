package crew_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/command"
)

// hold checks what is true of every text and of every way to cut it.
func hold(t require.TestingT, text string, cuts []int) {
	whole := all(text)
	require.Equal(t, whole, pieces(t, text, cuts...))
	seen := map[int64]bool{}
	for _, item := range whole {
		require.False(t, seen[item.Offset], "two items at %d", item.Offset)
		seen[item.Offset] = true
		require.GreaterOrEqual(t, item.Offset, int64(0))
		require.True(t, len(text) >= int(item.Offset)+6 && text[item.Offset:item.Offset+6] == "⟦⟦", "no block at %d", item.Offset)
		require.NotEqual(t, item.Problem == "", item.Payload == nil)
		if item.Problem == "" {
			_, err := command.Decode(item.Name, item.Payload)
			require.NoError(t, err)
			// The payload can be a part of a record.
			_, err = crewbody.Decode[crewbody.Command](crewbody.Encode(crewbody.Command{Name: item.Name, Payload: item.Payload}))
			require.NoError(t, err)
		}
	}
	p := new(command.Parser)
	p.Write(text)
	require.LessOrEqual(t, proto.Size(p), len(text)+200)
}

func FuzzParser(f *testing.F) {
	for i, text := range append(examples(), awkward...) {
		f.Add(text, uint16(i), uint16(3*i))
	}
	f.Fuzz(func(t *testing.T, text string, first, second uint16) {
		a, b := int(first)%(len(text)+1), int(second)%(len(text)+1)
		hold(t, text, []int{min(a, b), max(a, b)})
	})
}

// texts are what texts with commands are made of.
var texts = []string{
	"⟦⟦", "⟧⟧", "⟦", "⟧", " ", "\n", "{", "}", "[", "]", `"`, `\`, `\"`, ":", ",", "1", "null", "word", "RESET_DAG", "LOCK_FILE", "NOSUCH",
	"⟦⟦ RESET_DAG ⟧⟧", lockA, `{"filePath": "`, `"}`, `"filePath": `, "é", "\xe2", "\xe2\x9f", "\xff", "😀", "\\u0041", "\\ud800",
}

func TestItemsDoNotDependOnPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, token := range rapid.SliceOfN(rapid.SampledFrom(texts), 0, 60).Draw(t, "text") {
			text += token
		}
		var cuts []int
		for at := 0; ; {
			at += rapid.IntRange(0, 12).Draw(t, "piece")
			if at >= len(text) {
				break
			}
			cuts = append(cuts, at)
		}
		hold(t, text, cuts)
	})
}

// Commands between pieces of prose without opening brackets are executed, all of them and in order, and what their strings hold is
// never executed.
func TestProseHidesNoCommandAndStringsExecuteNone(t *testing.T) {
	prose := rapid.SampledFrom([]string{"", "words ", "\" it's \"", "⟧⟧", "⟦", "⟦⟦ lower ", "⟦⟦ TODO write ", "{", "}", "\\", "⟦⟦ ", "⟦⟦⟦ x"})
	rapid.Check(t, func(t *rapid.T) {
		text, want := "", []string(nil)
		for range rapid.IntRange(1, 8).Draw(t, "commands") {
			content := ""
			for _, token := range rapid.SliceOfN(rapid.SampledFrom(texts), 0, 10).Draw(t, "content") {
				content += token
			}
			content = "x" + strings.ToValidUTF8(content, "?")
			body := crewbody.Encode(crewbody.Note{Text: content})
			value := body[len(`{"text":`) : len(body)-1]
			text += prose.Draw(t, "prose") + `⟦⟦ BROADCAST {"content": ` + string(value) + "} ⟧⟧"
			want = append(want, string(value))
		}
		items := all(text)
		require.Len(t, items, len(want), text)
		for i, item := range items {
			require.Empty(t, item.Problem)
			require.JSONEq(t, `{"content":`+want[i]+`}`, string(item.Payload))
		}
	})
}

func BenchmarkParserSmallPieces(b *testing.B) {
	text := "Some prose before it. " + lockA + " and some prose after it.\n"
	b.SetBytes(int64(len(text)))
	p := new(command.Parser)
	for b.Loop() {
		for at := 0; at < len(text); at += 7 {
			p.Write(text[at:min(at+7, len(text))])
		}
	}
}
