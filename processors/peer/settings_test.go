package peer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/peer"
)

func none(string) (string, bool) { return "", false }

func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
}

func parse(t *testing.T, peers string) *peer.Settings {
	t.Helper()
	s, err := peer.ParseSettings([]byte(`{"peers":`+peers+`}`), none)
	require.NoError(t, err, peers)
	return s
}

func hashOf(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

func TestFileIsReadWhole(t *testing.T) {
	sum := hashOf("T2")
	s := parse(t, `{"enabled":true,"instanceId":" hq-1 ","instanceName":"HQ",
		"outbound":[{"id":" tenant-a ","baseUrl":" https://a.example/x// ","token":" T1 ","description":" d ",
			"allowedAgentIds":[" front "],"timeoutMs":5000},{"id":"tenant-b","baseUrl":"http://127.0.0.1:8080","token":"T1"}],
		"inboundTokens":[{"id":"partner-b","tokenSha256":"`+hex.EncodeToString(sum[:])+`","allowedAgentIds":["front","back"],
			"maxConcurrent":2,"allowedTools":[" delegate_to_peer "],"callbackService":" partner-b-callback "},{"id":"partner-c","token":" T 3 "}],
		"defaultOutboundTimeoutMs":30000,"inboundMaxConcurrent":9,"maxHops":2}`)
	require.Equal(t, &peer.Settings{
		Enabled: true, InstanceID: "hq-1", InstanceName: "HQ",
		Outbound: []peer.Outbound{
			{
				ID: "tenant-a", BaseURL: "https://a.example/x", Token: peer.NewSecret("T1"), Description: "d",
				AllowedAgents: []string{"front"}, Timeout: 5 * time.Second,
			},
			{ID: "tenant-b", BaseURL: "http://127.0.0.1:8080", Token: peer.NewSecret("T1"), Timeout: 30 * time.Second},
		},
		Inbound: []peer.Inbound{
			{
				ID: "partner-b", TokenSHA256: sum, AllowedAgents: []string{"front", "back"}, MaxConcurrent: 2,
				AllowedTools: []string{"delegate_to_peer"}, CallbackService: "partner-b-callback",
			},
			{ID: "partner-c", TokenSHA256: hashOf("T 3"), MaxConcurrent: 9},
		},
		InboundMaxConcurrent: 9, MaxHops: 2,
	}, s)
}

func TestDefaults(t *testing.T) {
	for _, content := range []string{
		`{}`, `{"peers":null}`, `{"peers":{}}`, `{"other":[1]}`, " {}\r\n",
		`{"peers":{"enabled":null,"instanceId":null,"defaultOutboundTimeoutMs":null,"inboundTokens":[],"outbound":[]}}`,
	} {
		s, err := peer.ParseSettings([]byte(content), none)
		require.NoError(t, err, content)
		require.Equal(t, &peer.Settings{InboundMaxConcurrent: 4, MaxHops: 4}, s, content)
	}
}

// An absent timeout must not become the shortest one.
func TestPeerWithoutATimeoutHasTheDefaultOne(t *testing.T) {
	const outbound = `{"id":"a","baseUrl":"https://a.example","token":"T1"%s}`
	for member, want := range map[string]time.Duration{
		``: time.Minute, `,"timeoutMs":null`: time.Minute, `,"timeoutMs":1`: time.Second, `,"timeoutMs":1000`: time.Second,
		`,"timeoutMs":1500.9`: 1500 * time.Millisecond, `,"timeoutMs":" 2e3 "`: 2 * time.Second,
		`,"timeoutMs":600000`: 10 * time.Minute, `,"timeoutMs":1e300`: 10 * time.Minute,
	} {
		s := parse(t, `{"outbound":[`+fmt.Sprintf(outbound, member)+`]}`)
		require.Equal(t, want, s.Outbound[0].Timeout, member)
	}
	for _, member := range []string{`0`, `-1`, `0.9`, `"0"`} {
		_, err := peer.ParseSettings([]byte(`{"peers":{"outbound":[`+fmt.Sprintf(outbound, "")+`,`+
			fmt.Sprintf(outbound, `,"timeoutMs":`+member)+`]}}`), none)
		require.ErrorIs(t, err, peer.ErrSettings)
		require.EqualError(t, err,
			"peer: bad settings: peers.outbound[1].timeoutMs: want at least 1; without it, it is 60000", member)
	}
}

func TestNumbersAreCutToTheirBounds(t *testing.T) {
	s := parse(t, `{"defaultOutboundTimeoutMs":5,"inboundMaxConcurrent":100,"maxHops":"99","inboundTokens":[{"id":"a","token":"T","maxConcurrent":70}],
		"outbound":[{"id":"a","baseUrl":"https://a.example","token":"T1"}]}`)
	require.Equal(t, time.Second, s.Outbound[0].Timeout)
	require.Equal(t, 64, s.InboundMaxConcurrent)
	require.Equal(t, 64, s.Inbound[0].MaxConcurrent)
	require.Equal(t, 32, s.MaxHops)
}

func TestTextsThatAreBooleansAreRead(t *testing.T) {
	for text, want := range map[string]bool{`true`: true, `" TRUE "`: true, `"False"`: false, `false`: false} {
		require.Equal(t, want, parse(t, `{"enabled":`+text+`,"instanceId":"a"}`).Enabled, text)
	}
}

func TestLastEntryCountsAtTheFirstPlace(t *testing.T) {
	s := parse(t, `{"enabled":true,"instanceId":"a","outbound":[{"id":"a","baseUrl":"https://1.example","token":"T1"},
		{"id":"b","baseUrl":"https://2.example","token":"T1"},{"id":" a ","baseUrl":"https://3.example","token":"T2"}],
		"inboundTokens":[{"id":"a","token":"T1"},{"id":"a","token":"T2"},{"id":"b","token":" T1 ","allowedAgentIds":["x"]}]}`)
	require.Equal(t, "https://3.example", s.Outbound[0].BaseURL)
	require.Equal(t, "b", s.Outbound[1].ID)
	require.Len(t, s.Outbound, 2)
	require.Len(t, s.Inbound, 2)
	require.Equal(t, "b", s.Inbound[0].ID)

	first, ok := s.Accept("T1")
	require.True(t, ok)
	require.Equal(t, []string{"x"}, first.AllowedAgents)
	second, ok := s.Accept("T2")
	require.True(t, ok, "a label may have several tokens, so that one can be replaced")
	require.Equal(t, "a", second.ID)
}

func TestTokensThatAreNotAccepted(t *testing.T) {
	const tokens = `"instanceId":"a","inboundTokens":[{"id":"a","token":"T1"}],"outbound":[{"id":"a","baseUrl":"https://1.example","token":"T1"}]}`
	on, off := parse(t, `{"enabled":true,`+tokens), parse(t, `{"enabled":false,`+tokens)
	sum := hashOf("T1")
	for _, token := range []string{"", "T", "T11", "t1", " T1", hex.EncodeToString(sum[:]), strings.Repeat("T", 5000)} {
		_, ok := on.Accept(token)
		require.False(t, ok, token)
	}
	_, ok := off.Accept("T1")
	require.False(t, ok, "nothing is accepted if it is disabled")
	_, ok = off.Peer("a")
	require.False(t, ok)
	_, ok = on.Peer("A")
	require.False(t, ok)
	o, ok := on.Peer(" a ")
	require.True(t, ok)
	require.Equal(t, "T1", o.Token.Reveal())
}

func TestListsOfAgents(t *testing.T) {
	for _, c := range []struct {
		list  []string
		agent string
		want  bool
	}{
		{nil, "", true},
		{nil, "x", true},
		{[]string{}, "x", true},
		{[]string{"main", "x"}, "x", true},
		{[]string{"main"}, " main ", true},
		{[]string{"main"}, "", false},
		{[]string{"main"}, " ", false},
		{[]string{"main"}, "Main", false},
	} {
		require.Equal(t, c.want, peer.Outbound{AllowedAgents: c.list}.MayUse(c.agent), "%v", c)
		require.Equal(t, c.want, peer.Inbound{AllowedAgents: c.list}.MayUse(c.agent), "%v", c)
	}
	require.Empty(t, parse(t, `{"inboundTokens":[{"id":"a","token":"T","allowedAgentIds":[]}]}`).Inbound[0].AllowedAgents)
}

// A label may have several tokens. The most restrictive entry decides.
func TestLabelsThatMayDelegate(t *testing.T) {
	s := parse(t, `{"inboundTokens":[{"id":"a","token":"T1","allowedTools":["read","delegate_to_peer"]},
		{"id":"b","token":"T2","allowedTools":["delegate_to_peer"]},{"id":"b","token":"T3"},
		{"id":"c","token":"T4","allowedTools":["Delegate_To_Peer","delegate"]},{"id":"d","token":"T5","allowedTools":[]}]}`)
	for label, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "A": false, "": false} {
		require.Equal(t, want, s.MayDelegate(label), label)
	}
}

const (
	outbound = `{"outbound":[{"id":"a","baseUrl":"https://a.example","token":"T1"},{"id":"a","baseUrl":"https://a.example","token":"T1"%s}]}`
	inbound  = `{"inboundTokens":[{"id":"a","token":"T1"%s}]}`
)

func TestMistakesAreRejectedByName(t *testing.T) {
	for _, c := range []struct{ peers, want string }{
		// A list of agents that would be ignored allows every agent.
		{fmt.Sprintf(inbound, `,"allowedAgentIds":"front"`), "peers.inboundTokens[0].allowedAgentIds: want an array of texts"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":null`), "peers.inboundTokens[0].allowedAgentIds: want an array of texts"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":{}`), "peers.inboundTokens[0].allowedAgentIds: want an array of texts"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":[" ",""]`), "peers.inboundTokens[0].allowedAgentIds[0]: blank"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":["a",5]`), "peers.inboundTokens[0].allowedAgentIds[1]: want a text"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":["a\u0000"]`), "peers.inboundTokens[0].allowedAgentIds[0]: a character of it is not printable"},
		{fmt.Sprintf(outbound, `,"allowedAgentIds":"front"`), "peers.outbound[1].allowedAgentIds: want an array of texts"},
		{fmt.Sprintf(outbound, `,"allowedAgentIds":[""]`), "peers.outbound[1].allowedAgentIds[0]: blank"},
		{fmt.Sprintf(inbound, `,"allowedAgentsIds":["front"]`), "peers.inboundTokens[0]: member 3 is unknown; want id, token, tokenSha256, allowedAgentIds, maxConcurrent, allowedTools, callbackService"},
		{fmt.Sprintf(inbound, `,"allowedTools":"delegate_to_peer"`), "peers.inboundTokens[0].allowedTools: want an array of texts"},
		{fmt.Sprintf(inbound, `,"allowedTools":[""]`), "peers.inboundTokens[0].allowedTools[0]: blank"},
		{fmt.Sprintf(inbound, `,"callbackService":["a"]`), "peers.inboundTokens[0].callbackService: want a text"},
		{fmt.Sprintf(inbound, `,"allowedAgentIds":[`+strings.Repeat(`"a",`, 1000)+`"a"]`), "peers.inboundTokens[0].allowedAgentIds: want at most 1000 texts"},

		{`{"enabled":true}`, "peers.instanceId: blank"},
		{`{"enabled":true,"instanceId":"  "}`, "peers.instanceId: blank"},
		{`{"enabled":"yes"}`, "peers.enabled: want true or false"},
		{`{"enabled":1}`, "peers.enabled: want true or false"},
		{`{"instanceId":5}`, "peers.instanceId: want a text"},
		{`{"instanceId":"` + strings.Repeat("x", 257) + `"}`, "peers.instanceId: longer than 256 bytes"},
		{`{"instanceId":"a\nb"}`, "peers.instanceId: a character of it is not printable"},
		{`{"instanceid":"a"}`, "peers: member 1 is unknown"},
		{`{"outbound":{}}`, "peers.outbound: want an array of objects"},
		{`{"inboundTokens":"T1"}`, "peers.inboundTokens: want an array of objects"},
		{`{"inboundTokens":["T1"]}`, "peers.inboundTokens[0]: want an object"},
		{`{"inboundTokens":[null]}`, "peers.inboundTokens[0]: want an object"},
		{`{"inboundMaxConcurrent":0}`, "peers.inboundMaxConcurrent: want at least 1; without it, it is 4"},
		{`{"inboundMaxConcurrent":true}`, "peers.inboundMaxConcurrent: want a number"},
		{`{"inboundMaxConcurrent":"0x10"}`, "peers.inboundMaxConcurrent: want a number"},
		{`{"defaultOutboundTimeoutMs":"soon"}`, "peers.defaultOutboundTimeoutMs: want a number"},
		{`{"defaultOutboundTimeoutMs":1e999}`, "peers.defaultOutboundTimeoutMs: want a number"},
		{`{"defaultOutboundTimeoutMs":""}`, "peers.defaultOutboundTimeoutMs: want a number"},
		{`{"maxHops":-1}`, "peers.maxHops: want at least 1"},
		{`[]`, "peers: want an object"},
		{`"T1"`, "peers: want an object"},

		{`{"inboundTokens":[{"token":"T1"}]}`, "peers.inboundTokens[0].id: blank"},
		{`{"inboundTokens":[{"id":" ","token":"T1"}]}`, "peers.inboundTokens[0].id: blank"},
		{`{"inboundTokens":[{"id":"a"}]}`, "peers.inboundTokens[0].token: blank; want token or tokenSha256"},
		{`{"inboundTokens":[{"id":"a","token":" "}]}`, "peers.inboundTokens[0].token: blank"},
		{`{"inboundTokens":[{"id":"a","token":5}]}`, "peers.inboundTokens[0].token: want a text"},
		{`{"inboundTokens":[{"id":"a","token":"T\n1"}]}`, "peers.inboundTokens[0].token: a character of it is not printable ASCII"},
		{`{"inboundTokens":[{"id":"a","token":"` + strings.Repeat("T", 5000) + `"}]}`, "peers.inboundTokens[0].token: longer than 4096 bytes"},
		{`{"inboundTokens":[{"id":"a","token":"T1","tokenSha256":"` + strings.Repeat("0", 64) + `"}]}`, "peers.inboundTokens[0].tokenSha256: want either"},
		{`{"inboundTokens":[{"id":"a","tokenSha256":"` + strings.Repeat("0", 63) + `"}]}`, "peers.inboundTokens[0].tokenSha256: want 64 hexadecimal digits"},
		{`{"inboundTokens":[{"id":"a","tokenSha256":"` + strings.Repeat("0", 66) + `"}]}`, "peers.inboundTokens[0].tokenSha256: want 64 hexadecimal digits"},
		{`{"inboundTokens":[{"id":"a","tokenSha256":"` + strings.Repeat("g", 64) + `"}]}`, "peers.inboundTokens[0].tokenSha256: want 64 hexadecimal digits"},

		{`{"outbound":[{"baseUrl":"https://a.example","token":"T1"}]}`, "peers.outbound[0].id: blank"},
		{`{"outbound":[{"id":"a","baseUrl":"https://a.example"}]}`, "peers.outbound[0].token: blank; want token or tokenEnv"},
		{`{"outbound":[{"id":"a","baseUrl":"https://a.example","tokenEnv":"X"}]}`, "peers.outbound[0].tokenEnv: the environment variable that it names is unset or blank"},
		{`{"outbound":[{"id":"a","baseUrl":"https://a.example","token":"T1","tokenEnv":"X"}]}`, "peers.outbound[0].tokenEnv: want either"},
		{`{"outbound":[{"id":"a","token":"T1"}]}`, "peers.outbound[0].baseUrl: want an http or https URL"},
	} {
		_, err := peer.ParseSettings([]byte(`{"peers":`+c.peers+`}`), none)
		require.ErrorIs(t, err, peer.ErrSettings, c.peers)
		require.ErrorContains(t, err, "peer: bad settings: "+c.want, c.peers)
	}
	for _, url := range []string{
		"", "a.example", "ftp://a.example", "https://", "https:///x", "https:a.example", "https://:443", "https://a.example?x=1",
		"https://a.example?", "https://a.example#x", "https://a.example#", "https://user@a.example", "https://u:p@a.example",
		"https://a.example:port", "https://a b.example", "https://a.example/\u00e9", "https://a.example/\tx", "//a.example", "HTTPS//a",
	} {
		quoted, _ := jsontext.AppendQuote(nil, url)
		_, err := peer.ParseSettings([]byte(`{"peers":{"outbound":[{"id":"a","token":"T1","baseUrl":`+string(quoted)+`}]}}`), none)
		require.ErrorContains(t, err, "peers.outbound[0].baseUrl: want an http or https URL without user, query and fragment", url)
	}
}

func TestFilesThatAreNoConfigurationAreRejected(t *testing.T) {
	for _, content := range []string{
		``, ` `, `null`, `[]`, `{`, `{"peers":{}`, `{} {}`, `{}x`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}",
		strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65), `{"a":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		_, err := peer.ParseSettings([]byte(content), none)
		require.ErrorIs(t, err, peer.ErrSettings, "%.60s", content)
	}
}

func TestAllMistakesAreReported(t *testing.T) {
	_, err := peer.ParseSettings([]byte(`{"peers":{"enabled":true,"outbound":[{}],"inboundTokens":[{}]}}`), none)
	for _, want := range []string{
		"peers.instanceId", "peers.outbound[0].id", "peers.outbound[0].baseUrl", "peers.outbound[0].token",
		"peers.inboundTokens[0].id", "peers.inboundTokens[0].token",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEnvironmentTakesPrecedence(t *testing.T) {
	const content = `{"peers":{"enabled":false,"instanceId":"file","instanceName":"file","maxHops":"bad",
		"outbound":[{"id":"a","baseUrl":"https://a.example","tokenEnv":"TENANT_A_TOKEN"}]}}`
	s, err := peer.ParseSettings([]byte(content), environment(map[string]string{
		"PEER_ENABLED": "TRUE", "PEER_INSTANCE_ID": " env ", "PEER_INSTANCE_NAME": " ", "PEER_MAX_HOPS": "7",
		"PEER_DEFAULT_OUTBOUND_TIMEOUT_MS": "2000", "PEER_INBOUND_MAX_CONCURRENT": "8", "TENANT_A_TOKEN": " T9\n",
	}))
	require.NoError(t, err)
	require.True(t, s.Enabled)
	require.Equal(t, "env", s.InstanceID)
	require.Equal(t, "file", s.InstanceName, "a blank variable counts as unset")
	require.Equal(t, 7, s.MaxHops)
	require.Equal(t, 8, s.InboundMaxConcurrent)
	require.Equal(t, 2*time.Second, s.Outbound[0].Timeout)
	require.Equal(t, "T9", s.Outbound[0].Token.Reveal())

	_, err = peer.ParseSettings([]byte(`{}`), environment(map[string]string{"PEER_MAX_HOPS": "many"}))
	require.ErrorContains(t, err, "peers.maxHops: want a number")
	require.Len(t, peer.SettingsEnvironment(), 6)
}

func TestErrorsAndFormattedSettingsContainNoToken(t *testing.T) {
	const token = "tok-6c1d0f"
	places := []string{
		`{"inboundTokens":[{"id":"a","token":"%s\nx"}]}`, `{"inboundTokens":["%s"]}`, `{"inboundTokens":"%s"}`, `"%s"`,
		`{"%s":1}`, `{"inboundTokens":[{"%s":"a"}]}`, `{"inboundTokens":[{"id":"%s\u0000"}]}`, `{"enabled":"%s"}`,
		`{"inboundTokens":[{"id":"a","tokenSha256":"%s"}]}`, `{"outbound":[{"id":"a","baseUrl":"https://u:%s@a.example"}]}`,
		`{"outbound":[{"id":"a","baseUrl":"https://a.example/%%zz%s"}]}`, `{"outbound":[{"id":"a","tokenEnv":"%s"}]}`,
		`{"maxHops":"%s"}`, `{"inboundTokens":[{"allowedAgentIds":"%s"}]}`, `{"a":"%s","a":1}`, `{"%s":1,"%[1]s":1}`, `{"%s}`,
		`{"outbound":[{"id":"a","timeoutMs":"%s"}]}`,
	}
	for _, place := range places {
		place = fmt.Sprintf(place, token)
		_, err := peer.ParseSettings([]byte(`{"peers":`+place+`}`), none)
		require.Error(t, err, place)
		require.NotContains(t, err.Error(), token, place)
	}

	s := parse(t, `{"enabled":true,"instanceId":"a","outbound":[{"id":"a","baseUrl":"https://a.example","token":"`+token+`"}]}`)
	encoded, err := json.Marshal(s.Outbound[0].Token)
	require.NoError(t, err)
	hidden := struct{ inner peer.Outbound }{s.Outbound[0]}
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v", *s, s.Outbound, s.Outbound[0]), fmt.Sprintf("%v %+v %#v", hidden, hidden, hidden),
		fmt.Sprint(s.Outbound[0].Token), string(encoded),
	} {
		require.NotContains(t, text, token)
	}
	require.Contains(t, string(encoded), "[secret]")
	require.Empty(t, peer.Secret{}.Reveal())
}

func TestErrorNamesTheLineThatIsNotJSON(t *testing.T) {
	for content, want := range map[string]string{
		"{\n \"peers\": {\n  \"token\": S3CRET\n }\n}":             "; see line 3",
		"{\n \"peers\": {\n  \"S3CRET\": 1,\n  \"S3CRET\": 2\n }}": "; see line 4",
		"{\n \"peers\": {},\n}":                                    "; see line 2",
	} {
		_, err := peer.ParseSettings([]byte(content), func(string) (string, bool) { return "", false })
		require.ErrorIs(t, err, peer.ErrSettings)
		require.Contains(t, err.Error(), want, content)
		require.NotContains(t, err.Error(), "S3CRET")
	}
}

// Such a file would otherwise be one that is not enabled.
func TestConfigurationOutsideOfPeersIsRejected(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, err := peer.ParseSettings([]byte(`{"enabled":true,"instanceId":"hq-1"}`), none)
	require.ErrorIs(t, err, peer.ErrSettings)
	require.ErrorContains(t, err, "instanceId: want it in the member peers")
	_, err = peer.ParseSettings([]byte(`{"instanceId":"another program's","peers":{}}`), none)
	require.NoError(t, err)
}
