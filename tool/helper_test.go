package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"strings"
	"syscall"
	"time"
)

// helper is what the test binary does as a program. Arguments that name a file are
// signals to the test: the program writes there that it has come so far.
func helper(role string, args []string) {
	switch role {
	case "echo": // what it got
		in, _ := io.ReadAll(os.Stdin)
		wd, _ := os.Getwd()
		env := os.Environ()
		sort.Strings(env)
		json.NewEncoder(os.Stdout).Encode(map[string]any{"stdin": string(in), "argv": args, "dir": wd, "env": env})
	case "print": // its arguments, as they are
		for _, a := range args {
			fmt.Print(a)
		}
	case "bytes": // so many of one letter, as a JSON string
		var n int
		fmt.Sscan(args[0], &n)
		fmt.Print(`"` + strings.Repeat("x", n) + `"`)
	case "flood": // without end
		chunk := bytes.Repeat([]byte("x"), 1<<16)
		for i := 0; i < 100<<20/len(chunk); i++ {
			if _, err := os.Stdout.Write(chunk); err != nil {
				os.Exit(3)
			}
		}
	case "fail":
		fmt.Fprint(os.Stderr, args[0])
		exit(3)
	case "fail-long":
		fmt.Fprint(os.Stderr, strings.Repeat("ä", 1<<20)+"the end")
		exit(1)
	case "fail-bytes":
		os.Stderr.Write([]byte("bad \xff\xfe byte\x00s"))
		exit(1)
	case "kill":
		fmt.Fprint(os.Stderr, "about to die")
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang": // until SIGTERM, as most programs do
		touch(args[0])
		io.Copy(io.Discard, os.Stdin)
		time.Sleep(time.Hour)
	case "stubborn": // also after SIGTERM
		signal.Ignore(syscall.SIGTERM)
		touch(args[0])
		time.Sleep(time.Hour)
	case "finish": // ends well when asked to end
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		touch(args[0])
		<-term
		fmt.Print(`{"cleaned":true}`)
	case "close-stdin":
		os.Stdin.Close()
		fmt.Print(`"closed"`)
	case "grandchild": // leaves one behind that holds all three pipes open
		c := exec.Command(os.Args[0], "helper", "stubborn", args[0])
		c.Stdout, c.Stderr, c.Stdin = os.Stdout, os.Stderr, os.Stdin
		if err := c.Start(); err != nil {
			panic(err)
		}
		os.WriteFile(args[0]+".pid", fmt.Append(nil, c.Process.Pid), 0o600)
		fmt.Print(`"left one behind"`)
	case "parent": // waits for a child that hangs
		c := exec.Command(os.Args[0], "helper", "stubborn", args[0])
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		os.WriteFile(args[0]+".pid", fmt.Append(nil, c.Process.Pid), 0o600)
		c.Wait()
	default:
		panic("no role " + role)
	}
}

// exit ends without what a test binary built for coverage prints at its end.
func exit(code int) { syscall.Exit(code) }

func touch(path string) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		panic(err)
	}
}
