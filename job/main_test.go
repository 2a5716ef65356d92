package job_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/placet-dev/placet/job"
)

// The test binary is also the runner, and the commands of the jobs.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == job.RunnerCommand {
		os.Exit(job.Runner(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
		return
	}
	if err := os.Setenv("OF_THE_SUPERVISOR", "hidden"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// helper is a job's command in some role.
func helper(role string, args []string) {
	switch role {
	case "hang":
		fmt.Println("ready", os.Getpid())
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready", os.Getpid())
		time.Sleep(time.Hour)
	case "echo": // what is sent to it, until its input ends
		fmt.Println("ready")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println("got", in.Text())
			if in.Text() == "end" {
				return
			}
		}
		fmt.Println("eof")
	case "print": // so many events of so many bytes
		n, _ := strconv.Atoi(args[0])
		size, _ := strconv.Atoi(args[1])
		out := bufio.NewWriter(os.Stdout)
		defer out.Flush()
		for i := range n {
			fmt.Fprintf(out, "AGENT_EVENT {\"type\":\"metric\",\"data\":{\"n\":%d,\"pad\":%q}}\n", i, strings.Repeat("x", size))
		}
	case "family": // children in its group, in a session of their own, and left behind
		for _, line := range []string{"sleep 3600 &", "setsid sleep 3600 &", "(setsid sleep 3600 &)", "(env -i sleep 3600 &)"} {
			c := exec.Command("/bin/sh", "-c", line+"\nwait")
			if err := c.Start(); err != nil {
				panic(err)
			}
		}
		for sleeping(os.Getppid()) < 4 {
			runtime.Gosched()
		}
		fmt.Println("ready", os.Getpid())
		time.Sleep(time.Hour)
	case "large": // an event that fits, one that does not, a line that is too long, one more
		for _, e := range []struct {
			name string
			size int
		}{{"fits", job.MaxEventBytes - 50}, {"over", job.MaxEventBytes}, {"long", job.MaxLine}, {"after", 1}} {
			fmt.Printf("AGENT_EVENT {\"type\":%q,\"data\":%q}\n", e.name, strings.Repeat("x", e.size))
		}
	case "supervise":
		supervise(args)
	case "split": // its argument, a byte at a time
		for i := range args[0] {
			os.Stdout.WriteString(args[0][i : i+1])
		}
	default:
		panic("no role " + role)
	}
}
