package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also the program that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// helper prints a line when it is ready and then does what its role says.
func helper(role string) {
	switch role {
	case "exit":
		os.Exit(7)
	case "hang":
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "parent": // of one that does not obey
		c := exec.Command(os.Args[0], "helper", "stubborn")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println(c.Process.Pid)
		c.Wait()
	case "self":
		fmt.Println(Self())
	default:
		panic("no role " + role)
	}
}

// startHelper starts the test binary in that role. Nothing of it is left after the test.
func startHelper(t *testing.T, role string) (*Group, *os.File) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "helper", role)
	cmd.Stdout = w
	g, err := Start(cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Signal(os.Kill)
		<-g.Exited()
		r.Close()
	})
	return g, r
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
