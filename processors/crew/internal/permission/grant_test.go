package permission

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

func grantOf(call string) string {
	return callOf(crewbody.Permission{Run: run, RequestID: "r1", ToolCall: topics.Raw(call)}).tool()
}

func grantOfMethod(method, args string) string {
	return callOf(crewbody.Permission{Run: run, RequestID: "r1", Method: method, Args: topics.Raw(args)}).tool()
}

func TestGrantIsForOneCommandOrForOneToolOfTheAdapter(t *testing.T) {
	require.Equal(t, "execute:npm test", grantOf(`{"kind":"execute","title":"x","rawInput":{"command":"npm test","description":"y"}}`))
	require.Equal(t, "execute:npm test", grantOf(`{"kind":"execute","rawInput":{"command":"npm test","call_id":"c1","timeout":5}}`))
	require.NotEqual(t, grantOf(`{"kind":"execute","rawInput":{"command":"npm test"}}`), grantOf(`{"kind":"execute","rawInput":{"command":"npm  test"}}`))
	require.Equal(t, `execute:["npm","test"]`, grantOf(`{"kind":"execute","rawInput":{"command":["npm","test"]}}`))
	require.Equal(t, "tool:Bash", grantOf(`{"kind":"execute","_meta":{"claudeCode":{"toolName":"Bash"}},"rawInput":{"command":"npm test"}}`))
	require.Equal(t, "tool:Edit", grantOf(`{"kind":"edit","_meta":{"toolName":"Edit","a":{"toolName":"B"}}}`))

	edit := grantOf(`{"kind":"edit","title":"one","rawInput":{"path":"a","text":"b"}}`)
	require.Equal(t, edit, grantOf(`{"kind":"edit","title":"two","rawInput":{"text": "b", "path":"a"}}`), "not the title, nor the order")
	require.NotEqual(t, edit, grantOf(`{"kind":"edit","title":"one","rawInput":{"path":"a","text":"c"}}`))
	require.Regexp(t, `^edit:[0-9a-f]{64}$`, edit)

	silent := topics.Raw(`{"kind":"edit","title":"one","content":[]}`)
	one := callOf(crewbody.Permission{Run: run, RequestID: "r1", ToolCall: silent}).tool()
	two := callOf(crewbody.Permission{Run: run, RequestID: "r2", ToolCall: silent}).tool()
	require.NotEqual(t, one, two, "without input, no later request is known to be the same")
}

func TestGrantOfACommandIsForItsDirectoryAndEnvironment(t *testing.T) {
	const plain = `{"kind":"execute","rawInput":{"command":["npm","test"]}}`
	for _, more := range []string{`"cwd":"/repo"`, `"env":{"LD_PRELOAD":"/x.so"}`, `"sandbox":false`, `"args":["x"]`} {
		other := grantOf(`{"kind":"execute","rawInput":{"command":["npm","test"],` + more + `}}`)
		require.NotEqual(t, grantOf(plain), other, more)
		require.Regexp(t, `^execute:[0-9a-f]{64}:\["npm","test"\]`, other, "people can read the command")
	}
	create := func(cwd, env string) string {
		return grantOfMethod("terminal/create", `{"command":"npm","args":["test"],"cwd":"`+cwd+`","env":["X"],"env_sha256":"`+env+`"}`)
	}
	require.Equal(t, create("/repo", "1"), create("/repo", "1"))
	require.NotEqual(t, create("/repo", "1"), create("/repo", "2"))
	require.NotEqual(t, create("/repo", "1"), create("/repo/sub", "1"))
}

func TestGrantOfAFileIsForItsContent(t *testing.T) {
	write := func(path, content string) string {
		return grantOfMethod("fs/write_text_file", `{"path":"`+path+`","bytes":4,"content_sha256":"`+content+`"}`)
	}
	require.Equal(t, write("/a", "1"), write("/a", "1"))
	require.NotEqual(t, write("/a", "1"), write("/a", "2"))
	require.NotEqual(t, write("/a", "1"), write("/b", "1"))
	require.Equal(t, grantOfMethod("fs/read_text_file", `{"path":"/a"}`), grantOfMethod("fs/read_text_file", `{"path":"/a"}`))
}

// Hosts of older builds do not say what a file contains or which environment a command has.
func TestRequestThatDoesNotSayEverythingHasAGrantOfItsOwn(t *testing.T) {
	for method, args := range map[string]string{
		"fs/write_text_file": `{"path":"/a","bytes":4}`, "terminal/create": `{"command":"npm","args":["test"],"cwd":"","env":[]}`,
	} {
		one := crewbody.Permission{Run: run, RequestID: "r1", Method: method, Args: topics.Raw(args)}
		two := one
		two.RequestID = "r2"
		require.NotEqual(t, callOf(one).tool(), callOf(two).tool(), method)
	}
}

func TestCallsOfDifferentShapesHaveDifferentGrants(t *testing.T) {
	digest := strings.TrimPrefix(grantOf(`{"kind":"execute","rawInput":{"path":"a"}}`), "execute:")
	withCwd := strings.TrimPrefix(grantOf(`{"kind":"execute","rawInput":{"command":"npm test","cwd":"/x"}}`), "execute:")
	calls := []string{
		`{"kind":"execute","rawInput":{"command":"npm test"}}`,
		`{"kind":"execute","_meta":{"toolName":"execute:npm test"},"rawInput":{"command":"rm -r src"}}`,
		`{"kind":"tool","rawInput":{"command":"execute:npm test"}}`,
		`{"kind":"execute:npm","rawInput":{"command":"test"}}`,
		`{"kind":"execute","rawInput":{"command":"rm","args":["a"]}}`,
		`{"kind":"execute","rawInput":{"command":"rm [\"a\"]"}}`,
		`{"kind":"execute","rawInput":{"command":["rm"],"args":["a"]}}`,
		`{"kind":"execute","rawInput":{"command":["rm","a"]}}`,
		`{"kind":"execute","rawInput":{"command":"[\"rm\",\"a\"]"}}`,
		`{"kind":"execute","rawInput":{"path":"a"}}`,
		`{"kind":"execute","rawInput":{"command":"` + digest + `"}}`,
		`{"kind":"execute","rawInput":{"command":"npm test","cwd":"/x"}}`,
		`{"kind":"execute","rawInput":{"command":"` + withCwd + `"}}`,
		`{"kind":"terminal/create","rawInput":{"command":"npm","args":["test"],"cwd":"/repo","env":[],"env_sha256":"1"}}`,
	}
	names := map[string]string{
		grantOfMethod("terminal/create", `{"command":"npm","args":["test"],"cwd":"/repo","env":[],"env_sha256":"1"}`): "the host",
	}
	for _, call := range calls {
		name := grantOf(call)
		require.Empty(t, names[name], "%s has the name %s too", call, name)
		names[name] = call
	}
}

// Two calls have one name only if they name the same tool, or have the same kind and do the same.
func TestGrantsOfDifferentCallsDiffer(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "a", "tool", "execute", "a:b", "execute:a", "tool:a", `["a"]`, "[", strings.Repeat("0", 64)})
	type shape struct{ kind, tool, command, args, cwd string }
	draw := func(t *rapid.T, label string) (s shape, call string) {
		s = shape{
			kind: words.Draw(t, label+" kind"), tool: words.Draw(t, label+" tool"), command: words.Draw(t, label+" command"),
			args: words.Draw(t, label+" args"), cwd: words.Draw(t, label+" cwd"),
		}
		if s.kind == "" {
			s.kind = "other"
		}
		input := map[string]any{"command": s.command}
		if s.args != "" {
			input["args"] = []string{s.args}
		}
		if s.cwd != "" {
			input["cwd"] = s.cwd
		}
		raw, err := json.Marshal(map[string]any{"kind": s.kind, "_meta": map[string]any{"toolName": s.tool}, "rawInput": input})
		if err != nil {
			t.Fatal(err)
		}
		if s.tool != "" {
			s = shape{tool: s.tool}
		}
		return s, string(raw)
	}
	rapid.Check(t, func(t *rapid.T) {
		one, first := draw(t, "one")
		two, second := draw(t, "two")
		require.Equal(t, one == two, grantOf(first) == grantOf(second), "%s %s", first, second)
	})
}
