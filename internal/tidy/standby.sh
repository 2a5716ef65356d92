# Waits for its input to end, kills the groups that it was told of and whoever's
# environment names $1 or something in it, and removes $1.
trap '' HUP INT QUIT TERM
root=$1
groups=
case $root in
  /?*/?*) ;;
  *) exit 1 ;; # too much would be named so; tidy.go has looked already
esac
while read -r verb pid; do
  case $verb in
    group) groups="$groups $pid" ;;
    forget)
      rest=
      for g in $groups; do
        [ "$g" = "$pid" ] || rest="$rest $g"
      done
      groups=$rest
      ;;
  esac
done

for g in $groups; do
  kill -9 -"$g" 2>/dev/null
done
# Who is about to start another is killed in time or not, so it is looked again until
# nobody is found, for ten seconds.
tries=0
while [ $tries -lt 100 ]; do
  found=
  for file in $(grep -lsaF -e "$root" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    kill -9 "${pid%/environ}" 2>/dev/null && found=yes
  done
  [ "$found" ] || break
  tries=$((tries + 1))
  sleep 0.1
done
rm -rf "$root"
[ ! -e "$root" ]
