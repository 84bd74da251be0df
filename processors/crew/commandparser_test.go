package crew_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/processors/crew/internal/command"
)

// all returns the items of a text that comes in one piece.
func all(text string) []command.Item { return new(command.Parser).Write(text) }

// stored returns a parser after it was stored and read again.
func stored(t require.TestingT, p *command.Parser) *command.Parser {
	raw, err := proto.Marshal(p)
	require.NoError(t, err)
	again := new(command.Parser)
	require.NoError(t, proto.Unmarshal(raw, again))
	return again
}

// pieces returns the items of a text that comes in pieces that end at the cuts. The parser is stored between them.
func pieces(t require.TestingT, text string, cuts ...int) (items []command.Item) {
	p, start := new(command.Parser), 0
	for _, end := range append(cuts, len(text)) {
		items = append(items, p.Write(text[start:end])...)
		p, start = stored(t, p), end
	}
	return items
}

// outline writes items in short: the names of commands, with "!" before those that are not executed.
func outline(items []command.Item) string {
	var words []string
	for _, item := range items {
		if item.Problem != "" {
			words = append(words, "!"+item.Name)
		} else {
			words = append(words, item.Name)
		}
	}
	return strings.Join(words, " ")
}

// examples are the commands that the help text shows.
func examples() (texts []string) {
	for line := range strings.Lines(command.Help()) {
		if strings.HasPrefix(line, "⟦⟦") {
			texts = append(texts, strings.TrimSpace(line))
		}
	}
	return texts
}

const (
	lockA   = `⟦⟦ LOCK_FILE {"filePath": "a"} ⟧⟧`
	unlockA = `⟦⟦ UNLOCK_FILE {"filePath": "a"} ⟧⟧`
)

func TestX01_CommandsAreRecognisedWhereverTheyStand(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"⟦⟦ QUERY_CREW ⟧⟧", "QUERY_CREW"},
		{"⟦⟦QUERY_CREW⟧⟧", "QUERY_CREW"},
		{"⟦⟦ \t\n QUERY_CREW \r\n\n ⟧⟧", "QUERY_CREW"},
		{`⟦⟦LOCK_FILE{"filePath":"a"}⟧⟧`, "LOCK_FILE"},
		{"⟦⟦ LOCK_FILE\n{\n  \"filePath\": \"a\",\n  \"reason\": \"b\"\n}\n⟧⟧", "LOCK_FILE"},
		{lockA + unlockA + "⟦⟦ QUERY_CREW ⟧⟧", "LOCK_FILE UNLOCK_FILE QUERY_CREW"},
		{"First I take it: " + lockA + ", then I give it back (" + unlockA + ").", "LOCK_FILE UNLOCK_FILE"},
		{"⟦⟦⟦ QUERY_CREW ⟧⟧⟧", "QUERY_CREW"},
		{"⟦⟦⟦⟦ QUERY_CREW ⟧⟧", "QUERY_CREW"},
		{"Code has no effect: `⟦⟦ QUERY_CREW ⟧⟧`\n```\n" + lockA + "\n```\n", "QUERY_CREW LOCK_FILE"},
		{`⟦⟦ ACTIVITY {"summary": "x", "details": {"a": [1, {"b": -1.5e3}, [], {}, true, null]}} ⟧⟧`, "ACTIVITY"},
	} {
		require.Equal(t, test.want, outline(all(test.text)), test.text)
	}
	for _, text := range examples() {
		items := all(text)
		require.Len(t, items, 1, text)
		require.Empty(t, items[0].Problem, text)
		require.Zero(t, items[0].Offset)
	}
	items := all("I take it. " + lockA)
	require.EqualValues(t, 11, items[0].Offset)
	require.JSONEq(t, `{"filePath":"a"}`, string(items[0].Payload))
}

func TestX02_WhatIsNoCommandIsIgnored(t *testing.T) {
	for _, text := range []string{
		"", "no brackets", "⟦ QUERY_CREW ⟧", "⟦⟦ QUERY_CREW ⟧", "⟦ QUERY_CREW ⟧⟧", "⟦⟦ QUERY_CREW", "QUERY_CREW ⟧⟧",
		"⟦⟦ QUERY_CREW ⟧ ⟧", "⟦ ⟦ QUERY_CREW ⟧⟧", "⟦⟦ query_crew ⟧⟧", "⟦⟦ Query_Crew ⟧⟧", `⟦⟦ lock_file {"filePath": "a"} ⟧⟧`,
		"⟦⟦ ⟧⟧", "⟦⟦⟧⟧", "⟦⟦ _X ⟧⟧", "⟦⟦ 1X ⟧⟧", "⟦⟦ TODO write this ⟧⟧", "[[ QUERY_CREW ]]",
		"⟦⟦ CREW_UPDATE\n== CURRENT CREW STATUS ==\nCREW_UPDATE ⟧⟧", `⟦⟦ LOCK_FILE {"filePath": "a"}`,
	} {
		require.Empty(t, all(text), text)
	}
	// Neither hides the command behind it.
	for _, text := range []string{"⟦⟦ see below", "⟦⟦ TODO write this", "⟦ QUERY_CREW ⟧⟧", "⟦⟦ query_crew ⟧⟧", "⟦⟦ ", "⟦⟦", "⟦", "⟧⟧", "⟦⟦ A-B ⟧⟧"} {
		require.Equal(t, "LOCK_FILE", outline(all(text+lockA)), text)
	}
}

// awkward are texts in which the end of a piece could matter.
var awkward = []string{
	"⟦⟦⟦ QUERY_CREW ⟧⟧⟧ ⟦ ⟧ ⟦⟦ ⟧⟧ \xe2 \xe2\x9f \xe2\x9f\xe2\x9f\xa6\xe2\x9f\xa6 QUERY_PEERS ⟧⟧",
	`⟦⟦ AGENT_MESSAGE {"to": "b", "content": "say ⟦⟦ RESET_DAG ⟧⟧ or \"⟦⟦ COMMIT {\"message\": \"x\"} ⟧⟧\""} ⟧⟧` + lockA,
	`⟦⟦ AGENT_MESSAGE {"to": "b", "content": ⟦⟦ RESET_DAG ⟧⟧ } ⟧⟧` + lockA,
	`⟦⟦ AGENT_MESSAGE ⟦⟦ RESET_DAG ⟧⟧ ⟧⟧` + lockA,
	`⟦⟦ COMMIT {"message": "5" tall"} ⟧⟧` + lockA,
	"⟦⟦ COMMIT {\"message\": \"unterminated} ⟧⟧\n" + lockA,
	"⟦⟦ COMMIT {\"message\": \"line\n⟦⟦ RESET_DAG ⟧⟧\nline\"} ⟧⟧" + lockA,
	`⟦⟦ COMMIT {"message": "x"} and ⟦⟦ QUERY_CREW ⟧⟧` + lockA,
	`⟦⟦ COMMIT {"message": "x"} ⟦⟦ QUERY_CREW ⟧⟧ words ` + lockA,
	`⟦⟦ DECLARE_TASKS [{"taskId": "a"}] ⟧⟧` + lockA,
	`⟦⟦ NOSUCH {"a": "⟦⟦ RESET_DAG ⟧⟧"} ⟧⟧⟦⟦ NOSUCH ⟧⟧` + lockA,
	"⟦⟦ COMMIT {⟧⟧" + lockA + "⟦⟦ COMMIT {]} ⟧⟧" + lockA,
	"⟦⟦ COMMIT {x ⟦⟦⟦ RESET_DAG⟧⟧ ⟦⟦ lower ⟦⟦ A⟦⟦ B ⟧⟧⟧⟧⟧⟧" + lockA,
	"héllo wörld 😀 ⟦⟦ BROADCAST {\"content\": \"日本語 😀\"} ⟧⟧ 😀",
	"⟦⟦ BROADCAST {\"content\": \"\xff\xe2\x9f bad \xf0\x9f\"} ⟧⟧",
}

func TestX03_WherePiecesEndChangesNothing(t *testing.T) {
	texts := append(examples(), awkward...)
	for _, text := range texts {
		whole := all(text)
		for i := range len(text) + 1 {
			require.Equal(t, whole, pieces(t, text, i), "%q cut at %d", text, i)
		}
		single := make([]int, len(text))
		for i := range single {
			single[i] = i
		}
		require.Equal(t, whole, pieces(t, text, single...), "%q byte by byte", text)
	}
	require.Equal(t, "QUERY_CREW QUERY_PEERS", outline(all(awkward[0])))
	require.Equal(t, "AGENT_MESSAGE LOCK_FILE", outline(all(awkward[1])))
}

func TestX04_InnerCommandsNeverExecute(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		// In a string it is text, in whatever state the rest of the block is.
		{`⟦⟦ BROADCAST {"content": "⟦⟦ RESET_DAG ⟧⟧"} ⟧⟧`, "BROADCAST"},
		{`⟦⟦ BROADCAST {"content": "⟦⟦ LOCK_FILE {\"filePath\": \"a\"} ⟧⟧"} ⟧⟧`, "BROADCAST"},
		{`⟦⟦ BROADCAST {"⟦⟦ RESET_DAG ⟧⟧": 1, "content": "x"} ⟧⟧`, "BROADCAST"},
		{`⟦⟦ NOSUCH {"content": "⟦⟦ RESET_DAG ⟧⟧"} ⟧⟧`, "!NOSUCH"},
		{`⟦⟦ DECLARE_TASKS ["⟦⟦ RESET_DAG ⟧⟧"] ⟧⟧`, "!DECLARE_TASKS"},
		// Outside a string it is reported, and so is the block around it.
		{"⟦⟦ BROADCAST ⟦⟦ RESET_DAG ⟧⟧ ⟧⟧", "!RESET_DAG !BROADCAST"},
		{"⟦⟦ BROADCAST⟦⟦RESET_DAG⟧⟧⟧⟧", "!RESET_DAG !BROADCAST"},
		{`⟦⟦ BROADCAST {"content": ⟦⟦ RESET_DAG ⟧⟧} ⟧⟧`, "!BROADCAST !RESET_DAG"},
		{`⟦⟦ BROADCAST {oops, "content": "⟦⟦ RESET_DAG ⟧⟧ and ⟦⟦ QUERY_CREW ⟧⟧"} ⟧⟧`, "!BROADCAST !RESET_DAG !QUERY_CREW"},
		{`⟦⟦ BROADCAST {oops ⟦⟦ NOSUCH ⟦⟦ RESET_DAG ⟧⟧ ⟧⟧ ⟧⟧`, "!BROADCAST"},
		{"⟦⟦ BROADCAST {\"content\": \"line\n⟦⟦ RESET_DAG ⟧⟧\"} ⟧⟧", "!BROADCAST !RESET_DAG"},
		{`⟦⟦ LOCK_FILE {"filePath": "a"} ⟦⟦ RESET_DAG ⟧⟧ ⟧⟧`, "!LOCK_FILE !RESET_DAG"},
	} {
		require.Equal(t, test.want, outline(all(test.text)), test.text)
		// The command behind it runs.
		require.Equal(t, test.want+" QUERY_PEERS", outline(all(test.text+"⟦⟦ QUERY_PEERS ⟧⟧")), test.text)
	}
	items := all(`⟦⟦ BROADCAST {"content": "⟦⟦ RESET_DAG ⟧⟧"} ⟧⟧`)
	require.JSONEq(t, `{"content":"⟦⟦ RESET_DAG ⟧⟧"}`, string(items[0].Payload), "the string is untouched")
	items = all("⟦⟦ BROADCAST ⟦⟦ RESET_DAG ⟧⟧ ⟧⟧")
	require.Contains(t, items[0].Problem, "inside the block of BROADCAST")
	require.EqualValues(t, 17, items[0].Offset)
	require.EqualValues(t, 0, items[1].Offset)
}

func TestX05_OnlyQuotesOfPayloadsMatter(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`It's 5" wide. "` + lockA, "LOCK_FILE"},
		{`" ⟦⟦ " ` + lockA + ` " ` + unlockA, "LOCK_FILE UNLOCK_FILE"},
		{`\" ` + lockA, "LOCK_FILE"},
		{`⟦⟦ LOCK_FILE {"filePath": "a} ⟧⟧ b"} ⟧⟧`, "LOCK_FILE"},
		{`⟦⟦ LOCK_FILE {"filePath": "a\"} ⟧⟧ b"} ⟧⟧`, "LOCK_FILE"},
		{`⟦⟦ LOCK_FILE {"filePath": "a\\"} ⟧⟧ b"} ⟧⟧`, "LOCK_FILE"},
		{`⟦⟦ LOCK_FILE {"filePath": "a\\\"} ⟧⟧"} ⟧⟧`, "LOCK_FILE"},
	} {
		require.Equal(t, test.want, outline(all(test.text)), test.text)
	}
	require.Equal(t, `{"filePath":"a\"} ⟧⟧ b"}`, string(all(`⟦⟦ LOCK_FILE {"filePath": "a\"} ⟧⟧ b"} ⟧⟧`)[0].Payload))
	require.Equal(t, `{"filePath":"a\\"}`, string(all(`⟦⟦ LOCK_FILE {"filePath": "a\\"} ⟧⟧ b"} ⟧⟧`)[0].Payload))
}

func TestX06_PositionsInAndOutsideBlocks(t *testing.T) {
	inner := "⟦⟦ RESET_DAG ⟧⟧"
	for _, test := range []struct{ name, text, want string }{
		{"empty text", "", ""},
		{"start of the text", inner, "RESET_DAG"},
		{"before a block", inner + lockA, "RESET_DAG LOCK_FILE"},
		{"inside a string", `⟦⟦ BROADCAST {"content": "` + inner + `"} ⟧⟧`, "BROADCAST"},
		{"inside a block", "⟦⟦ BROADCAST " + inner + " ⟧⟧", "!RESET_DAG !BROADCAST"},
		{"after a block", lockA + inner, "LOCK_FILE RESET_DAG"},
		{"after a block with a single bracket", lockA + "⟧" + inner, "LOCK_FILE RESET_DAG"},
		{"end of the text", "words " + inner, "RESET_DAG"},
		{"behind an opener in prose", "Blocks begin with ⟦⟦ and end with ⟧⟧. " + inner, "RESET_DAG"},
		{"in a block that never ends", `⟦⟦ LOCK_FILE {"filePath": "` + inner, ""},
	} {
		require.Equal(t, test.want, outline(all(test.text)), test.name)
	}
	require.Empty(t, new(command.Parser).Write(""))
	var p command.Parser
	p.Write("prose of any length and " + lockA + " and more")
	require.Less(t, proto.Size(&p), 16, "nothing but the offset is kept outside a block")
	require.EqualValues(t, len("prose of any length and "+lockA+" and more"), p.GetOffset())
}

func TestX07_MistakesAreAnsweredOnceAndFollowingCommandsRun(t *testing.T) {
	for _, mistake := range []string{
		"{not json}", `{"filePath": }`, `{"filePath": "a",}`, `{'filePath': 'a'}`, `{"filePath": "a"`, `{"filePath": "a"}}`, `{"filePath": "a"} x`,
		`{"filePath" "a"}`, `{"filePath": "5" tall"}`, `{"filePath": tru}`, `{"filePath": 01}`, `{"filePath": "\x"}`, `{"filePath": "\ud800"}`,
		`{"filePath": "a", "filePath": "b"}`, "{\"filePath\": \"a\nb\"}", "{\"filePath\": \"a}\n", "{]}", "{", "{{}", `["a"]`, "[", "[}",
		"{}", `{"filePath": 1}`, `{"filePath": ""}`, `{"filePath": {}}`, `{"filePath": null}`,
		`{"a": ` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}",
	} {
		text := "⟦⟦ LOCK_FILE " + mistake + " ⟧⟧\n" + unlockA
		items := all(text)
		require.Equal(t, "!LOCK_FILE UNLOCK_FILE", outline(items), mistake)
		require.Nil(t, items[0].Payload)
		require.Contains(t, items[0].Problem, "LOCK_FILE error")
		require.Contains(t, items[0].Problem, "Example: ⟦⟦ LOCK_FILE")
	}
	// A string that is not closed ends with its line.
	require.Equal(t, "!LOCK_FILE UNLOCK_FILE", outline(all("⟦⟦ LOCK_FILE {\"filePath\": \"a} ⟧⟧\n"+unlockA)))
	require.Contains(t, all(`⟦⟦ LOCK_FILE {"filePath": 1} ⟧⟧`)[0].Problem, "filePath: must be a string")
	require.Contains(t, all(`⟦⟦ DECLARE_TASKS [] ⟧⟧`)[0].Problem, `the array as "tasks"`)
}

func TestX09_UnknownCommandsAreAnsweredWithHelp(t *testing.T) {
	for _, text := range []string{"⟦⟦ NOSUCH ⟧⟧", `⟦⟦ NOSUCH {"a": {"b": 1}} ⟧⟧`, "⟦⟦ LOCKFILE {} ⟧⟧", "⟦⟦ NOSUCH {oops} ⟧⟧"} {
		items := all(text + lockA)
		require.Len(t, items, 2, text)
		require.Contains(t, items[0].Problem, command.Help())
		require.Empty(t, items[1].Problem)
	}
	for _, text := range []string{"⟦⟦ QUERY_CREW ⟧⟧", "⟦⟦ QUERY_CREW {} ⟧⟧", `⟦⟦ QUERY_CREW {"a": {"b": []}} ⟧⟧`} {
		items := all(text)
		require.Len(t, items, 1)
		require.Empty(t, items[0].Problem, text)
		require.NotEmpty(t, items[0].Payload, text)
	}
	// A command that needs a payload is mentioned, not given, without one.
	items := all("⟦⟦ COMMIT ⟧⟧")
	require.Len(t, items, 1)
	require.Contains(t, items[0].Problem, "the payload is missing")
	require.Contains(t, all("⟦⟦ SPAWN_AGENT {} ⟧⟧")[0].Problem, "Use CREATE_AGENT")
	require.Contains(t, all("⟦⟦ TELEGRAM_SEND {} ⟧⟧")[0].Problem, "not available")
	require.Empty(t, all("⟦⟦ CREW_UPDATE ⟧⟧"), "blocks of the crew itself are not answered")
}

func TestX12_BlocksAreBoundedAndTheNewestTextIsKept(t *testing.T) {
	for _, begin := range []string{"⟦⟦", "⟦⟦ COMMIT", "⟦⟦ COMMIT ", `⟦⟦ COMMIT {"message": "`, `⟦⟦ COMMIT {"message": "x"}`, `⟦⟦ COMMIT {oops `, "⟦⟦ COMMIT {x ⟦⟦ QUERY_CREW "} {
		for _, filler := range []string{" ", "x", "日", "😀", "⟦", "\x80", `\"`} {
			p, most := new(command.Parser), 0
			var items []command.Item
			write := func(text string) {
				items = append(items, p.Write(text)...)
				most = max(most, proto.Size(p))
				if filler != "\x80" { // bytes that are no characters are bounded by the size alone
					require.LessOrEqual(t, utf8.RuneCount(p.GetPayload()), command.MaxBlock)
				}
			}
			write(begin)
			for range 120 {
				write(strings.Repeat(filler, 3000/len(filler)))
			}
			write(" " + lockA)
			require.LessOrEqual(t, most, 300_100, "%s %q", begin, filler)
			require.NotEmpty(t, items, "%s %q", begin, filler)
			require.Equal(t, "LOCK_FILE", items[len(items)-1].Name, "%s %q", begin, filler)
			require.Empty(t, items[len(items)-1].Problem, "%s %q", begin, filler)
			require.LessOrEqual(t, len(items), 3, "%s %q: one problem a block", begin, filler)
			require.Less(t, proto.Size(p), 16)
		}
	}
	longest := strings.Repeat("x", 50_000)
	require.Equal(t, "BROADCAST", outline(all(`⟦⟦ BROADCAST {"content": "`+longest+`"} ⟧⟧`)))
	items := all(`⟦⟦ BROADCAST {"content": "` + longest + longest + `"} ⟧⟧` + lockA)
	require.Equal(t, "!BROADCAST LOCK_FILE", outline(items))
	require.Contains(t, items[0].Problem, fmt.Sprint(command.MaxBlock))
}

func TestX13_ReplayFromAStoredStateGivesEachOffsetOnce(t *testing.T) {
	text := "Begin. " + strings.Join(append(examples(), awkward...), " and ") + " End."
	whole := all(text)
	for cut := 0; cut <= len(text); cut += 11 {
		p := new(command.Parser)
		before := p.Write(text[:cut])
		// The processor is killed after it read more than it stored, and reads the same text again.
		crashed := stored(t, p)
		lost := crashed.Write(text[cut : cut+(len(text)-cut)/2])
		again := stored(t, p)
		seen := map[int64]bool{}
		items := append(before, again.Write(text[cut:])...)
		require.Equal(t, whole, items, "cut at %d", cut)
		for _, item := range items {
			require.False(t, seen[item.Offset], "cut at %d, offset %d", cut, item.Offset)
			seen[item.Offset] = true
		}
		// What the killed processor found is found again at the same offsets, by which receivers know it, and nothing else.
		found := items[len(before):]
		require.LessOrEqual(t, len(lost), len(found), "cut at %d", cut)
		if len(lost) > 0 {
			require.Equal(t, found[:len(lost)], lost, "cut at %d", cut)
		}
	}
}

func TestDropForgetsTheOpenBlockAndKeepsTheOffset(t *testing.T) {
	for _, open := range []string{`⟦⟦ LOCK_FILE {"filePath": "`, "⟦", "⟦⟦", "\xe2\x9f", "⟦⟦ COMMIT {x ⟦⟦ QUERY_CREW "} {
		var p command.Parser
		require.LessOrEqual(t, len(p.Write(open)), 2)
		p.Drop()
		require.EqualValues(t, len(open), p.GetOffset())
		items := p.Write(lockA)
		require.Len(t, items, 1, open)
		require.Equal(t, "LOCK_FILE", items[0].Name)
		require.EqualValues(t, len(open), items[0].Offset)
	}
}

// Models and the programs between them write white space that is not of ASCII.
func TestCommandBesideForeignWhiteSpaceIsRecognized(t *testing.T) {
	for _, white := range []string{"\u00a0", "\ufeff", "\u202f", "\u3000", "\u200b", "\u00a0 \ufeff"} {
		for _, text := range []string{
			"⟦⟦" + white + `LOCK_FILE` + white + `{"filePath":"a"}` + white + "⟧⟧", white + `⟦⟦ QUERY_CREW` + white + `⟧⟧` + white,
		} {
			items := all(text)
			require.Len(t, items, 1, "%q", text)
			require.Empty(t, items[0].Problem, "%q", text)
			for cut := range len(text) {
				require.Equal(t, items, pieces(t, text, cut), "%q at %d", text, cut)
			}
		}
	}
	require.Empty(t, all("⟦⟦ é COMMIT ⟧⟧"))
	require.Empty(t, all("⟦⟦ COM\u00a0MIT ⟧⟧"))
}
