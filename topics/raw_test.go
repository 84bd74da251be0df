package topics

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestElementsAliasTheArray(t *testing.T) {
	elements, err := Elements(Raw(` [ {"a": [1,2]} ,null, "x,y" ,5] `))
	require.NoError(t, err)
	require.Equal(t, []Raw{Raw(`{"a": [1,2]}`), nil, Raw(`"x,y"`), Raw(`5`)}, elements)
	elements, err = Elements(nil)
	require.NoError(t, err)
	require.Empty(t, elements)
	elements, err = Elements(Raw(`[]`))
	require.NoError(t, err)
	require.Empty(t, elements)
	for _, bad := range []string{`{}`, `"x"`, `[1,`, ``} {
		_, err = Elements(Raw(bad))
		require.Error(t, err, "%s", bad)
	}
}

func TestSpliceConcatenatesAndOmitsNulls(t *testing.T) {
	for name, test := range map[string]struct {
		values []string
		want   string
	}{
		"nothing":            {nil, `[]`},
		"nil":                {[]string{""}, `[]`},
		"null":               {[]string{"null", " null "}, `[]`},
		"empty":              {[]string{`[]`, `[ ]`}, `[]`},
		"arrays":             {[]string{`[1,2]`, ` [3] `, `[]`, `[4]`}, `[1,2,3,4]`},
		"one value":          {[]string{`[{"a":1}]`, `{"b":2}`, `[{"c":3}]`}, `[{"a":1},{"b":2},{"c":3}]`},
		"null elements":      {[]string{`[null]`, `[1,null ,2,null]`, `[ null]`}, `[1,2]`},
		"null members":       {[]string{`[{"m":null},{"m": null}]`}, `[{"m":null},{"m": null}]`},
		"inner nulls":        {[]string{`[[null],[1,null]]`}, `[[null],[1,null]]`},
		"null in text":       {[]string{`["[null,null]",",null"]`}, `["[null,null]",",null"]`},
		"spacing is content": {[]string{`[ {"a" : 1} , {"b":2} ]`}, `[{"a" : 1} , {"b":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			var values []Raw
			for _, v := range test.values {
				values = append(values, Raw(v))
			}
			require.Equal(t, test.want, string(Splice(values...)))
		})
	}
}

func TestMessagesSkipsNullsAndStopsAtTheFirstError(t *testing.T) {
	var roles []string
	for m, err := range Messages(Raw(`[{"role":"user"},null,{"role":"assistant"}]`)) {
		require.NoError(t, err)
		roles = append(roles, *m.Role)
	}
	require.Equal(t, []string{"user", "assistant"}, roles)
	errs := 0
	for _, err := range Messages(Raw(`[{"role":[]},{"role":[]}]`)) {
		require.ErrorIs(t, err, ErrType)
		errs++
	}
	require.Equal(t, 1, errs)
	for _, err := range Messages(Raw(`{}`)) {
		require.ErrorIs(t, err, ErrType)
	}
	_, err := DecodeMessage(nil)
	require.ErrorIs(t, err, ErrNull)
}

func TestTextReturnsTheReadableText(t *testing.T) {
	for content, want := range map[string]string{
		`"a  b "`: `a  b `, `""`: ``, `5`: `5`, `1.10`: `1.10`, `true`: `true`, `false`: `false`, `null`: ``,
		`{"type":"text","text":"x"}`: ``, `[]`: ``, `[`: ``, `not JSON`: ``,
		`[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"1","text":"no"}]`: `Let me look.`,
		`[{"type":"text","text":"a"},{"text":"b","type":"text"}]`:                          "a\n\nb",
		`["a",null,5,{"type":"text","text":" "},{"type":"text"},{"type":"text","text":5}]`: `a`,
	} {
		require.Equal(t, want, Text(Raw(content)), "%s", content)
	}
	require.Empty(t, Text(nil))
}

func TestLookupReturnsTopLevelMembers(t *testing.T) {
	metadata := Raw(`{"inner":{"agent":"no"},"agent":"a","request_id":7,"none":null,"agent":"b","esc\u0061ped":1}`)
	v, ok := Lookup(metadata, "agent")
	require.True(t, ok)
	require.Equal(t, `"b"`, string(v), "the last counts")
	v, ok = Lookup(metadata, "none")
	require.True(t, ok)
	require.Nil(t, v)
	_, ok = Lookup(metadata, "escaped")
	require.True(t, ok)
	for _, object := range []string{`{}`, `[]`, `"agent"`, `null`, `{"agent":1`} {
		_, ok = Lookup(Raw(object), "agent")
		require.False(t, ok, "%s", object)
	}
	_, ok = Lookup(nil, "agent")
	require.False(t, ok)

	for in, want := range map[string]string{`"a"`: `a`, `7`: `7`, `1.10`: `1.10`, `true`: `true`, `{"a":1}`: `{"a":1}`} {
		require.Equal(t, want, *TextOf(Raw(in)))
	}
	require.Nil(t, TextOf(nil))
	require.Nil(t, TextOf(Raw(`null`)))
}

func TestEqualComparesJSONValues(t *testing.T) {
	for _, same := range [][2]string{
		{`{"a":1,"b":[1,2]}`, ` { "b" : [1, 2], "a":1 }`},
		{`1.10`, `1.1`},
		{`1e2`, `100.0`},
		{`1e5`, `100000.0`},
		{`1`, `1.0`},
		{`"\u00e9"`, `"é"`},
		{`"\/"`, `"/"`},
		{`{"a":{"c":1,"b":2}}`, `{"a":{"b":2,"c":1}}`},
		{``, ``},
		{`null`, ``},
		{`not JSON`, `not JSON`},
	} {
		require.True(t, Equal(Raw(same[0]), nilIfEmpty(same[1])), "%s %s", same[0], same[1])
	}
	for _, other := range [][2]string{
		{`[1,2]`, `[2,1]`},
		{`"1"`, `1`},
		{`{"a":null}`, `{}`},
		{`9007199254740993`, `9007199254740992`},
		{`"a"`, `"A"`},
		{`not JSON`, `neither`},
	} {
		require.False(t, Equal(Raw(other[0]), Raw(other[1])), "%s %s", other[0], other[1])
	}
}

func nilIfEmpty(s string) Raw {
	if s == "" {
		return nil
	}
	return Raw(s)
}

func TestDigestDependsOnRoleTimestampAndContent(t *testing.T) {
	decode := func(s string) Message {
		m, err := DecodeMessage(Raw(s))
		require.NoError(t, err)
		return m
	}
	original := DigestOf(decode(`{"session_id":"s","role":"user","content":{"a":1.10,"b":2},"timestamp":"t"}`))
	require.Equal(t, original, DigestOf(decode(
		`{"sessionId":"s","user_id":"u","timestamp":"t","content":{ "b":2, "a":1.1 },"role":"user","metadata":{}}`)))
	for _, other := range []string{
		`{"role":"tool","content":{"a":1.1,"b":2},"timestamp":"t"}`, `{"role":"user","content":{"a":1.1},"timestamp":"t"}`,
		`{"role":"user","content":{"a":1.1,"b":2},"timestamp":"u"}`, `{"role":"user","content":{"a":1.1,"b":2}}`,
	} {
		require.NotEqual(t, original, DigestOf(decode(other)))
	}
	require.NotEqual(t, DigestOf(Message{Role: ptr("")}), DigestOf(Message{}))
	require.NotEqual(t, DigestOf(Message{Role: ptr("a"), Timestamp: ptr("b")}), DigestOf(Message{Role: ptr("ab")}))
}

func TestSpliceDoesNotParseArraysWithoutNullElements(t *testing.T) {
	history := Raw(`[` + strings.TrimSuffix(strings.Repeat(`{"content":"null, null","metadata":null},`, 100), ",") + `]`)
	require.False(t, mayHoldNull(Raw(`[{"metadata":null}]`)))
	require.Equal(t, string(history), string(Splice(history)))
}

func TestLookupAllReturnsMembersInTheOrderOfTheKeys(t *testing.T) {
	object := Raw(`{"b":1,"a":"x","n":null,"b":{"c":2}}`)
	require.Equal(t, []Raw{Raw(`"x"`), nil, nil, Raw(`{"c":2}`)}, LookupAll(object, "a", "none", "n", "b"))
	for _, invalid := range []string{``, `[]`, `{"a":1`, `7`} {
		require.Equal(t, []Raw{nil}, LookupAll(Raw(invalid), "a"), invalid)
	}
}
