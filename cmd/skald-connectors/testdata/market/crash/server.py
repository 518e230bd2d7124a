import sys
print("cannot open the thing", file=sys.stderr)
sys.exit(3)
