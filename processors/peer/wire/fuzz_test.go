package wire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/peer/wire"
)

var odd = []string{
	``, ` `, `null`, `[]`, `{}`, `{"a":1}x`, "{\"taskId\":\"\xff\"}", `{"taskId":"\ud800"}`, strings.Repeat(`[`, 100),
	`{"taskId":1,"taskId":"t","parentInstanceId":"","content":"c"}`,
}

func FuzzRequest(f *testing.F) {
	for _, body := range append(odd, with(``), with(`,"agentId":" x ","timeoutMs":1e3,"hopCount":2,"instanceChain":["a"],"callback":{"token":"T"}`)) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, refusal := wire.ReadRequest(body)
		if refusal != nil {
			require.Contains(t, []int{400, 413}, refusal.Status)
			require.True(t, jsontext.Value(refusal.Body()).IsValid())
			return
		}
		require.NotEmpty(t, req.TaskID)
		require.NotEmpty(t, req.Content)
		require.GreaterOrEqual(t, req.Path.Hops, max(1, len(req.Path.Chain)))
		again, refusal := wire.ReadRequest(req.Body())
		if refusal != nil { // replaced characters are longer
			require.Equal(t, wire.CodeTooLarge, refusal.Code)
			return
		}
		require.Equal(t, req, again)
		require.Equal(t, req.Hash(), again.Hash())
	})
}

func FuzzReply(f *testing.F) {
	for _, body := range append(odd, string(reply.Body())) {
		f.Add([]byte(body), "t-9")
	}
	f.Fuzz(func(t *testing.T, body []byte, task string) {
		wire.ReadRefusal(500, body)
		r, err := wire.ReadReply(body, task)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrReply)
			return
		}
		require.Equal(t, task, r.TaskID)
		text, failed := wire.ForModel(r)
		require.Equal(t, r.Status != wire.StatusSuccess, failed)
		require.LessOrEqual(t, len(text), wire.MaxResult+1024)
		again, err := wire.ReadReply(r.Body(), task)
		if err == nil {
			require.Equal(t, r.Status, again.Status)
			require.Equal(t, r.Result, again.Result)
		}
	})
}

func FuzzCard(f *testing.F) {
	for _, body := range append(odd, string(wire.Card{InstanceID: "a", Agents: []wire.Agent{{ID: "x", Name: "X"}}}.Body())) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := wire.ReadCard(body)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrCard)
			return
		}
		again, err := wire.ReadCard(c.Body())
		if err == nil {
			require.ElementsMatch(t, c.Agents, again.Agents)
			require.Equal(t, c.InstanceID, again.InstanceID)
		}
	})
}

func FuzzBearer(f *testing.F) {
	for _, header := range []string{"", "Bearer T", "bearer  a b ", "Bearer", "BearerT", "Bearer \xff", "İearer T"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, ok := wire.Bearer([]string{header})
		if ok {
			require.NotEmpty(t, token)
			require.Contains(t, header, token)
			require.Equal(t, wire.Trim(token), token)
			again, ok := wire.Bearer([]string{"Bearer " + token})
			require.True(t, ok || len(header) > wire.MaxHeader-8)
			require.True(t, again == token || !ok)
		}
	})
}
