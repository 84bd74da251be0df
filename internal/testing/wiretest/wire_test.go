package wiretest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeviationsFromTheWireFormatAreFound(t *testing.T) {
	const good = `{"session_id":"s","user_id":"u","content":"x","input_tokens":1,"output_tokens":2,"cost":1.2E-4,` +
		`"source_agent":"agent-1","reply_to":{"a": null},"timestamp":"2026-06-20T08:15:03Z"}`
	require.Empty(t, shapeProblem([]byte(good), outputShape))
	for name, c := range map[string][2]string{
		"a null":          {`"user_id":"u"`, `"user_id":null`},
		"a missing field": {`"content":"x",`, ``},
		"another order":   {`"input_tokens":1,"output_tokens":2`, `"output_tokens":2,"input_tokens":1`},
		"blanks":          {`"content":"x"`, `"content": "x"`},
		"an unknown one":  {`"cost"`, `"price"`},
		"a bare cost":     {`1.2E-4`, `1`},
		"a fraction":      {`"input_tokens":1`, `"input_tokens":1.0`},
		"a field twice":   {`"content":"x"`, `"content":"x","content":"x"`},
		"bad UTF-8":       {`"x"`, "\"\xff\""},
		"text after it":   {`Z"}`, `Z"} {}`},
		"a null object":   {`"reply_to":{"a": null}`, `"reply_to":"no"`},
	} {
		require.NotEmpty(t, shapeProblem([]byte(strings.Replace(good, c[0], c[1], 1)), outputShape), name)
	}
}

func TestTimestampsMustHaveJavasFormat(t *testing.T) {
	for text, bad := range map[string]bool{
		"2026-06-20T08:15:03Z": false, "2026-06-20T08:15:03.120Z": false, "2026-06-20T08:15:03.120001Z": false,
		"2026-06-20T08:15:03.12Z": true, "2026-06-20T08:15:03+00:00": true, "now": true,
	} {
		o, err := objectOf([]byte(`{"timestamp":` + quote(text) + `}`))
		require.NoError(t, err)
		require.Equal(t, bad, hasInvalidTimestamp(o), text)
	}
}

func TestMembersKeepTheirBytes(t *testing.T) {
	ms, err := members([]byte(` { "a" : [1 , {"x":","}] , "b\u0063" : "}\"," , "d":null } `))
	require.NoError(t, err)
	require.Len(t, ms, 3)
	require.Equal(t, `[1 , {"x":","}]`, string(ms[0].raw))
	require.Equal(t, "bc", ms[1].name)
	require.Equal(t, `"}\","`, string(ms[1].raw))
	require.Equal(t, "null", string(ms[2].raw))
	for _, text := range []string{``, `[]`, `{`, `{"a":1}{}`, `{"a"}`, "{\"a\":\"\xff\"}", `null`} {
		_, err := objectOf([]byte(text))
		require.Error(t, err, text)
	}
	es, err := elements([]byte(`[ ]`))
	require.NoError(t, err)
	require.Empty(t, es)
}

func TestKeysHaveThePartitionsOfTheJavaProducer(t *testing.T) {
	// Hashes of Kafka's own test of murmur2.
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "abc": 479470107,
	} {
		for _, n := range []int32{1, 3, 4, 12} {
			require.Equal(t, (hash&0x7fffffff)%n, partitionOf([]byte(key), n), key)
		}
	}
}
