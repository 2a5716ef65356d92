package command

import (
	"context"
	"encoding/json"
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

	"github.com/placet-dev/placet/delivery"
)

// The test binary is also the program that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == MinderWord {
		os.Exit(Minder(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// helper is what the test binary does as a program. The first argument names a file
// that tells the test how far it came, where that is needed.
func helper(role string, args []string) {
	switch role {
	case "tell": // what it got
		in, _ := io.ReadAll(os.Stdin)
		wd, _ := os.Getwd()
		b, _ := json.Marshal(told{string(in), wd, args, os.Environ()})
		write(args[0], b)
	case "exit":
		var code int
		fmt.Sscan(args[0], &code)
		fmt.Fprint(os.Stderr, args[1])
		syscall.Exit(code)
	case "unread": // ends without having read its input
		syscall.Exit(0)
	case "loud": // on both outputs, without end as far as anybody here waits
		chunk := strings.Repeat("x", 1<<16)
		for range 64 {
			os.Stdout.WriteString(chunk)
			os.Stderr.WriteString(chunk)
		}
		os.Stderr.WriteString("the end")
		syscall.Exit(3)
	case "kill":
		os.Stderr.WriteString("about to die")
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang":
		write(args[0], nil)
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		write(args[0], nil)
		time.Sleep(time.Hour)
	case "parent": // of one that does not obey, and that holds all pipes open
		c := exec.Command(os.Args[0], "helper", "stubborn", args[0])
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		write(args[0]+".pid", fmt.Append(nil, c.Process.Pid))
		c.Wait()
	case "send": // as a daemon does that is killed meanwhile
		c := New(Options{Minder: []string{os.Args[0], MinderWord}})
		c.Send(context.Background(), delivery.Message{Target: delivery.Target{Command: append([]string{os.Args[0], "helper"}, args...)}})
	default:
		panic("no role " + role)
	}
}

// told is what the role tell saw.
type told struct {
	In   string
	Dir  string
	Argv []string
	Env  []string
}

// write writes whole files only: whoever sees one can read it.
func write(path string, b []byte) {
	if err := os.WriteFile(path+".part", b, 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		panic(err)
	}
}
