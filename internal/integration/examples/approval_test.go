package examples

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestModelIsToldTheDifferenceBetweenTheFourDecisions(t *testing.T) {
	out, errs := new(buffer), new(buffer)
	require.Zero(t, run(deadline(t), "approval", nil, nil, out, errs), errs)
	require.Empty(t, errs.String())
	parts := strings.Split(strings.TrimSpace(out.String()), "\n\n")
	require.Len(t, parts, 4, out)
	for i, want := range [][]string{
		{`pay +ran: 12\.50 to mira`, `was told: success {"paid":1250`, `agent +Paid\.`},
		{`was told: error {"error":"[^"]*refused[^"]*Otto was paid yesterday\.","reason":"denied"}`, `agent +I did not pay`},
		{`pay +ran: 40\.00 to ines`, `was told: success {"paid":4000,.*"edited":true`, `agent +Paid\.`},
		{`was told: error {"error":"no one answered in time[^"]*","reason":"approval_timed_out"}`, `agent +I did not pay`},
	} {
		require.Contains(t, parts[i], "was read, without a gate")
		for _, line := range want {
			require.Regexp(t, line, parts[i])
		}
	}
	require.Equal(t, 2, strings.Count(out.String(), "  pay     ran"), "the tool ran for the approved calls only")
}

// With -serve, the commands that the program prints work. An amount over the limit is never paid.
func TestServedAgentIsPlayedWithItsPrintedCommands(t *testing.T) {
	ctx, stop := context.WithCancel(deadline(t))
	out, errs, code := new(buffer), new(buffer), make(chan int, 1)
	go func() { code <- run(ctx, "approval", []string{"-serve"}, nil, out, errs) }()
	printed := regexp.MustCompile(`curl -s (http://\S+)/api/chat -d '([^']+)'`)
	require.Eventually(t, func() bool { return printed.MatchString(out.String()) }, 2*time.Minute, 20*time.Millisecond)
	found := printed.FindStringSubmatch(out.String())
	base, body := found[1], found[2]

	status, _ := post(t, base+"/api/chat", body)
	require.Equal(t, http.StatusOK, status)
	var list struct {
		Gates []struct {
			ID string `json:"gate_id"`
		} `json:"gates"`
	}
	response, err := http.Get(base + "/api/gates?session_id=mine&status=pending&wait=30s")
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&list))
	require.NoError(t, response.Body.Close())
	require.Len(t, list.Gates, 1)

	status, answer := post(t, base+"/api/gates/"+list.Gates[0].ID+"/decision",
		`{"verdict":"approve","edited_args":{"to":"mira","cents":100001}}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	status, answer = post(t, base+"/api/gates/"+list.Gates[0].ID+"/decision", `{"verdict":"approve"}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "ran: 20.00 to mira") }, time.Minute, 20*time.Millisecond)
	stop()
	require.Zero(t, <-code, errs)
	require.Empty(t, errs.String())
	http.DefaultClient.CloseIdleConnections()
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(answer)
}
