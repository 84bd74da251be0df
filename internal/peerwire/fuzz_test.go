package peerwire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
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
		req, refusal := peerwire.ReadRequest(body)
		if refusal != nil {
			require.Contains(t, []int{400, 413}, refusal.Status)
			require.True(t, jsontext.Value(refusal.Body()).IsValid())
			return
		}
		require.NotEmpty(t, req.TaskID)
		require.NotEmpty(t, req.Content)
		require.GreaterOrEqual(t, req.Path.Hops, max(1, len(req.Path.Chain)))
		again, refusal := peerwire.ReadRequest(req.Body())
		if refusal != nil { // replaced characters are longer
			require.Equal(t, peerwire.CodeTooLarge, refusal.Code)
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
		peerwire.ReadRefusal(500, body)
		r, err := peerwire.ReadReply(body, task)
		if err != nil {
			require.ErrorIs(t, err, peerwire.ErrReply)
			return
		}
		require.Equal(t, task, r.TaskID)
		text, failed := peerwire.ForModel(r)
		require.Equal(t, r.Status != peerwire.StatusSuccess, failed)
		require.LessOrEqual(t, len(text), peerwire.MaxResult+1024)
		again, err := peerwire.ReadReply(r.Body(), task)
		if err == nil {
			require.Equal(t, r.Status, again.Status)
			require.Equal(t, r.Result, again.Result)
		}
	})
}

func FuzzCard(f *testing.F) {
	for _, body := range append(odd, string(peerwire.Card{InstanceID: "a", Agents: []peerwire.Agent{{ID: "x", Name: "X"}}}.Body())) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := peerwire.ReadCard(body)
		if err != nil {
			require.ErrorIs(t, err, peerwire.ErrCard)
			return
		}
		again, err := peerwire.ReadCard(c.Body())
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
		token, ok := peerwire.Bearer([]string{header})
		if ok {
			require.NotEmpty(t, token)
			require.Contains(t, header, token)
			require.Equal(t, peerwire.Trim(token), token)
			again, ok := peerwire.Bearer([]string{"Bearer " + token})
			require.True(t, ok || len(header) > peerwire.MaxHeader-8)
			require.True(t, again == token || !ok)
		}
	})
}
