package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/internal/cli"
	"github.com/placet-dev/placet/job"
	"github.com/placet-dev/placet/token"
)

// TestMain makes this binary placet itself when it is called so, and the runner of the
// jobs that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == job.RunnerCommand {
		os.Exit(job.Runner(os.Args[2]))
	}
	if os.Getenv("PLACET_TEST_BE_PLACET") != "" {
		os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(m.Run())
}

// patience bounds waits that end by a signal; only a failing test meets it.
const patience = 5 * time.Minute

// clients is the folder into which the clients were installed, as the lock file says.
var clients = sync.OnceValues(install)

func install() (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm is not here: the tests of this folder install MCP clients with it (apt-get install nodejs npm)")
	}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "placet-tests")
	dir := filepath.Join(home, "mcp-clients-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, installInto(npm, home, dir)
}

// installInto makes the folder at once: another test may be installing it too.
func installInto(npm, home, dir string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(home, "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	c.Dir = tmp
	if out, err := c.CombinedOutput(); err != nil {
		return errors.Join(errors.New("npm ci: "+string(out)), err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// world is a daemon that is a process of its own.
type world struct {
	t       *testing.T
	dir     string // of the installed clients
	url     string
	program string
	env     map[string]string
	home    *httpapi.Client
}

func serve(t *testing.T, args ...string) *world {
	t.Helper()
	dir, err := clients()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	w := &world{t: t, dir: dir, program: program, env: map[string]string{
		"PLACET_TEST_BE_PLACET": "1", "PLACET_DB": filepath.Join(home, "p.db"), "PLACET_HOME": home, "PATH": os.Getenv("PATH"), "HOME": home,
	}}
	c := exec.Command(program, append([]string{"--json", "serve", "--listen", "127.0.0.1:0"}, args...)...)
	c.Dir, c.Env = home, w.environ()
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("placet serve: %v: %s", err, errs.String())
		}
	})
	var at struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&at); err != nil {
		t.Fatalf("placet serve: %v: %s", err, errs.String())
	}
	secret, err := os.ReadFile(at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	w.url, w.home = at.URL, httpapi.NewClient(at.URL, strings.TrimSpace(string(secret)))
	return w
}

func (w *world) environ(more ...string) []string {
	env := more
	for k, v := range w.env {
		env = append(env, k+"="+v)
	}
	return env
}

func (w *world) token(s token.Scope, name string) string {
	w.t.Helper()
	k, err := w.home.CreateToken(w.t.Context(), httpapi.NewToken{Scope: s, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return k.Secret
}

// node is the one that was installed with the clients, which need a new one; where there
// is none for this machine, its own.
func (w *world) node() string {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	own := filepath.Join(w.dir, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return "node"
}

// run runs a script of an installed package, or one of this folder.
func (w *world) run(script string, args ...string) (stdout, stderr string, err error) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	c := exec.CommandContext(ctx, w.node(), append([]string{script}, args...)...)
	c.Dir, c.Env = w.t.TempDir(), w.environ("NO_COLOR=1")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	return out.String(), errs.String(), err
}

func (w *world) installed(parts ...string) string {
	return filepath.Join(append([]string{w.dir, "node_modules"}, parts...)...)
}

// withToken is an address at which every request gets the token: the suite has no way
// to send one. Host and Origin pass as they are. back is told where the daemon is.
func withToken(t *testing.T) (address string, back func(to, secret string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), func(to, secret string) {
		target, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: &httputil.ReverseProxy{
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0), // the suite hangs up on streams
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
				r.Out.Header.Set("Authorization", "Bearer "+secret)
			},
		}}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
	}
}
