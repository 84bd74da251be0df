//go:build browser

package console_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/console"
)

// tab is a tab of Chromium.
type tab struct {
	t    *testing.T
	ctx  context.Context
	site string
}

// browse starts Chromium (TURNTABLE_CHROMIUM, or chromium) and opens a tab. Its caller is the boss.
func browse(t *testing.T, site string) *tab {
	t.Helper()
	program := os.Getenv("TURNTABLE_CHROMIUM")
	if program == "" {
		program = "chromium"
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel() })
	require.NoError(t, chromedp.Do(ctx))
	return &tab{t: t, ctx: ctx, site: site}
}

// another opens another tab of the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	require.NoError(b.t, chromedp.Do(ctx))
	return &tab{t: b.t, ctx: ctx, site: b.site}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

func (b *tab) open(path string) *tab {
	b.t.Helper()
	b.do(chromedp.Navigate(b.site+path), chromedp.WaitReady(chromedp.CSS("#main")))
	return b
}

func (b *tab) without(javascript bool) *tab {
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: javascript})
	return b
}

// call sends a command.
func call[P, R any](b *tab, command cdp.Command[P, R], parameters P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, parameters)
	require.NoError(b.t, err)
	return r
}

// eval returns what an expression is, or resolves to.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return v
}

// until waits until the text of an element has some text.
func (b *tab) until(selector, text string) {
	b.t.Helper()
	var got string
	require.Eventually(b.t, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		defer cancel()
		var err error
		got, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
		return err == nil && strings.Contains(got, text)
	}, time.Minute, 50*time.Millisecond, "%s does not get %q: %s", selector, text, lazy{&got})
}

func (b *tab) click(selector string) { b.t.Helper(); b.do(chromedp.Click(chromedp.CSS(selector))) }

func TestTwoTabsDecideOneGate(t *testing.T) {
	f := newField(t)
	f.say("s", "pay 1200")
	path, _ := f.gateOf("s")
	first := browse(t, f.site.URL).open(path + "&show=request")
	second, stale := first.another().open(path+"&show=request"), first.another().without(true).open(path+"&show=request")
	first.do(chromedp.SendKeys(chromedp.CSS("#reason"), "fine"))
	first.click("#approve")
	first.until("#main", "Your decision counts.")
	second.until("#outcome", "approved (human) by boss")
	require.Equal(t, false, second.eval(`document.body.contains(document.querySelector('#deny'))`), "the form goes with the gate")
	stale.click("#deny")
	stale.until("#main", "Your decision does not count")
	stale.until("#outcome", "approved")
}

func TestGateExpiresUnderTheCursor(t *testing.T) {
	f := newField(t, func(c *agent.Config, _ *console.Config) {
		c.Approval = &approval.Policy{Default: approval.Ask, TTL: 12 * time.Second}
	})
	f.say("s", "pay 1200")
	path, _ := f.gateOf("s")
	b := browse(t, f.site.URL).open(path + "&show=request")
	b.do(chromedp.SendKeys(chromedp.CSS("#reason"), "half a rea"))
	b.eval(`document.querySelector('h1').textContent = 'old'`)
	f.say("other", "pay 1") // changes what the page shows
	require.Eventually(t, func() bool { return b.eval(`document.querySelector('h1').textContent`) == "Gate" }, time.Minute, 20*time.Millisecond)
	if b.eval(`Boolean(document.querySelector('#reason'))`) == true {
		require.Equal(t, "half a rea", b.eval(`document.querySelector('#reason').value`), "what was typed is kept")
		require.Equal(t, "reason", b.eval(`document.activeElement.id`), "the focus is kept")
	}
	b.until("#outcome", "timed_out")
	require.Equal(t, nil, b.eval(`document.querySelector('#reason')`))
	require.Equal(t, "main", b.eval(`document.activeElement.id`), "the focus is where the form was")
}

func TestTabsShareOneStream(t *testing.T) {
	f := newField(t)
	first := browse(t, f.site.URL).open("/console/gates")
	tabs := []*tab{first}
	for range 6 {
		tabs = append(tabs, first.another().open("/console/gates"))
	}
	f.say("s", "pay 1")
	for _, b := range tabs {
		b.until("#main", "1 open gate")
	}
}

func TestHostileTextsDoNothing(t *testing.T) {
	f := newField(t)
	session := hostile + "/.."
	f.say(session, "hostile")
	path, _ := f.gateOf(session)
	b := browse(t, f.site.URL)
	for _, p := range []string{path + "&show=request", "/console/", "/console/sessions", "/console/gates"} {
		b.open(p)
		require.NotEqual(t, "owned", b.eval(`document.title`))
		require.Equal(t, float64(0), b.eval(`document.images.length`))
	}
}

func TestEverythingWorksWithoutJavaScript(t *testing.T) {
	f := newField(t)
	f.say("s", "pay 1200")
	f.gateOf("s")
	b := browse(t, f.site.URL).without(true).open("/console/")
	b.click(`main a[href*="/gate?"]`)
	b.until("h1", "Gate")
	b.click("#show")
	b.until("#args", "1200")
	b.click("#approve")
	b.until("#outcome", "approved")
	b.click("#nav-sessions")
	b.click(`main a[href*="/session?"]`)
	b.until(".title", "s")
	b.click("#show")
	b.until(".talk", "pay 1200")
}

func TestKeyboardAlone(t *testing.T) {
	f := newField(t)
	f.say("s", "pay 1200")
	f.gateOf("s")
	b := browse(t, f.site.URL).open("/console/")
	press := func(key string) { b.do(chromedp.KeyEvent(key)) }
	// to moves the focus with Tab until it is on an element.
	to := func(is string) {
		t.Helper()
		for range 60 {
			press(kb.Tab)
			if b.eval(`(e => `+is+`)(document.activeElement)`) == true {
				require.Equal(t, true, b.eval(`document.activeElement.matches(':focus-visible')`), "the focus is visible")
				return
			}
		}
		t.Fatalf("Tab does not reach %s", is)
	}
	to(`e.classList.contains('skip')`)
	press(kb.Enter)
	require.Equal(t, "main", b.eval(`document.activeElement.id`))
	to(`e.href && e.href.includes('/gate?')`)
	press(kb.Enter)
	b.until("h1", "Gate")
	b.do(chromedp.WaitReady(chromedp.CSS("#show")))
	to(`e.id === 'show'`)
	press(kb.Enter)
	b.do(chromedp.WaitReady(chromedp.CSS("#approve")))
	to(`e.id === 'reason'`)
	call(b, input.InsertText, input.InsertTextParams{Text: "by hand"})
	to(`e.id === 'approve'`)
	press(kb.Enter)
	b.until("#outcome", "approved")
}

// served are the pages of a field with a bit of everything.
func served(f *field) (pages []string) {
	f.say("s", "write it")
	f.say("waits", "wait")
	f.say("dead", "hello", "shop")
	f.raw(f.agent.Topics().ToolUseResult.Name(), "nobody", `{"session_id":"nobody","tool_use_id":"none","status":"success","result":{}}`)
	path, _ := f.gateOf("s")
	f.as("boss").eventually("/console/letters", func(p string) bool { return strings.Contains(p, "1 dead letter") })
	f.as("boss").eventually("/console/deliveries?status=dead", func(p string) bool { return strings.Contains(p, "1 delivery") })
	f.as("boss").eventually("/console/processors", func(p string) bool { return strings.Contains(p, "Committed offsets") })
	f.as("boss").eventually("/console/costs", func(p string) bool { return strings.Contains(p, "<bdi>mira</bdi>") })
	return []string{
		"/console/", "/console/sessions", "/console/session?id=s&show=conversation", "/console/gates", path + "&show=request",
		"/console/deliveries?status=dead", "/console/letters", "/console/processors", "/console/costs", "/console/gate?session=x&id=y",
		"/console/crews?id=c-1&show=texts",
	}
}

// Axe finds nothing in both color schemes, pages fit a phone, and TURNTABLE_SCREENSHOTS gets pictures for the README.
func TestPagesAreAccessibleAndFitAPhone(t *testing.T) {
	axe, err := os.ReadFile(os.Getenv("TURNTABLE_AXE"))
	require.NoError(t, err, "TURNTABLE_AXE is axe.min.js of the package axe-core of npm")
	f := newField(t, withCrews(&crewDoor{}))
	pages := served(f)
	b := browse(t, f.site.URL)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, p := range pages {
			b.open(p)
			b.eval(string(axe) + ";0")
			found := b.eval(`axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html + ' ' + n.failureSummary)])))`)
			require.Equal(t, "[]", found, "%s, %s", p, scheme)
		}
	}
	for _, p := range pages {
		b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
		b.open(p)
		require.LessOrEqual(t, b.eval(`document.documentElement.scrollWidth`), float64(360), p)
	}
	if dir := os.Getenv("TURNTABLE_SCREENSHOTS"); dir != "" {
		b.scheme("light")
		for i, name := range map[int]string{0: "attention", 2: "session", 4: "gate", 10: "crew"} {
			b.do(chromedp.EmulateViewport(1100, 760))
			b.open(pages[i]).picture(filepath.Join(dir, name+".png"))
		}
		b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
		b.scheme("dark")
		b.open(pages[4]).picture(filepath.Join(dir, "phone.png"))
	}
}

func (b *tab) scheme(of string) {
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: of}},
	})
}

// picture writes what is seen.
func (b *tab) picture(path string) {
	b.t.Helper()
	raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(b.t, err)
	var small bytes.Buffer
	require.NoError(b.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, img))
	require.NoError(b.t, os.WriteFile(path, small.Bytes(), 0o644))
}

// child is the configuration of a process that serves the console of an agent.
type child struct {
	Brokers       []string
	Agent, Listen string
}

const childOf = "TURNTABLE_CONSOLE_CHILD"

func init() {
	text := os.Getenv(childOf)
	if text == "" {
		return
	}
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	a, err := agent.New(c.Agent, agentConfig(c.Brokers, func(a *agent.Config, _ *console.Config) { a.Listen = c.Listen }))
	if err == nil {
		err = a.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestProcessBehindThePageIsKilled(t *testing.T) {
	f := newField(t)
	f.stop()
	<-f.ended
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	start := func() *exec.Cmd {
		c, _ := json.Marshal(child{f.addrs, f.name, address})
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), childOf+"="+string(c))
		p.Stderr = os.Stderr
		require.NoError(t, p.Start())
		t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
		return p
	}
	process := start()
	f.site.URL = "http://" + address
	f.say("s", "pay 1200")
	require.Eventually(t, func() bool {
		r, err := f.as("boss").client.Get(f.site.URL + "/healthz")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == 200
	}, 2*time.Minute, 50*time.Millisecond)
	path, _ := f.gateOf("s")
	b := browse(t, f.site.URL).open(path + "&show=request")
	b.do(chromedp.SendKeys(chromedp.CSS("#reason"), "after the crash"))
	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
	b.until("#live", "cannot be reached")
	b.until("#args", "1200")
	start()
	b.until("#live", "Live")
	require.Equal(t, "after the crash", b.eval(`document.querySelector('#reason').value`))
	require.Eventually(t, func() bool { return b.eval(`fetch('/healthz').then(r => r.status)`) != nil }, time.Minute, 100*time.Millisecond)
	b.click("#approve")
	b.until("#outcome", "approved")
}
